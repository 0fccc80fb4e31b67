"use strict";

const one = id => document.getElementById(id);
const pad = one("pad"), pen = pad.getContext("2d", {willReadFrequently: true});
const PAUSE = 120, SECOND = 1000;
let facts = null, drawn = false, last = null, waiting = null, running = false;
let at = -1, playing = false;

const bytes = text => Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
const name = number => facts.class_names[number] ?? String(number);
const SI = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]];
const spoken = seconds => {
  const [scale, unit] = SI.find(([scale]) => seconds >= scale) ?? SI[2];
  return `${Number((seconds / scale).toPrecision(3))} ${unit}`;
};
const percent = part => `${Number((100 * part).toPrecision(2))} %`;

function clear() {
  pen.fillStyle = "#000";
  pen.fillRect(0, 0, pad.width, pad.height);
  drawn = false;
}

// ---- the pen

function place(event) {
  const box = pad.getBoundingClientRect();
  return [(event.clientX - box.left) * pad.width / box.width,
          (event.clientY - box.top) * pad.height / box.height];
}

pad.addEventListener("pointerdown", event => {
  if (!facts?.static) return;
  stop();
  pad.setPointerCapture(event.pointerId);
  if (!drawn) clear();
  drawn = true;
  one("place").textContent = "";
  last = place(event);
  stroke(last);
});
pad.addEventListener("pointermove", event => { if (last) stroke(place(event)); });
for (const kind of ["pointerup", "pointercancel"]) {
  pad.addEventListener(kind, () => { if (last) { last = null; later(0); } });
}

function stroke(to) {
  pen.strokeStyle = "#fff";
  pen.lineWidth = pad.width / Math.min(12, 0.8 * facts.shape[2]);
  pen.lineCap = pen.lineJoin = "round";
  pen.beginPath();
  pen.moveTo(...last);
  pen.lineTo(...to);
  pen.stroke();
  last = to;
  later(PAUSE);
}

function later(milliseconds) {
  clearTimeout(waiting);
  waiting = setTimeout(() => send(pad, one("centre").checked), milliseconds);
}

// ---- what the network sees: channels, rows and columns of bytes

function scaled(source, centre) {
  const [channels, height, width] = facts.shape;
  const small = new OffscreenCanvas(width, height).getContext("2d", {willReadFrequently: true});
  small.fillStyle = "#000";
  small.fillRect(0, 0, width, height);
  small.imageSmoothingQuality = "high";
  const found = centre ? bounds(source) : null;
  if (found) {
    const side = Math.max(found.width, found.height), part = width < 16 ? 0.95 : 20 / 28;
    const scale = part * Math.min(width, height) / side;
    const x = width / 2 - (found.x - found.left) * scale, y = height / 2 - (found.y - found.top) * scale;
    halved(small, source, found, x, y, found.width * scale, found.height * scale);
  } else {
    const side = Math.min(source.width, source.height);
    const box = {left: (source.width - side) / 2, top: (source.height - side) / 2, width: side, height: side};
    halved(small, source, box, 0, 0, width, height);
  }
  const image = small.getImageData(0, 0, width, height).data;
  const data = new Uint8Array(channels * height * width);
  for (let i = 0; i < height * width; ++i) {
    const [r, g, b] = image.subarray(4 * i, 4 * i + 3);
    if (channels === 3) [r, g, b].forEach((value, c) => { data[c * height * width + i] = value; });
    else data.fill(0.299 * r + 0.587 * g + 0.114 * b, i, i + 1);
  }
  return data;
}

// A browser's one step down to an eighth would skip pixels: it is done by halves.
function halved(target, source, box, x, y, width, height) {
  let now = new OffscreenCanvas(Math.max(1, Math.round(box.width)), Math.max(1, Math.round(box.height)));
  now.getContext("2d").drawImage(source, box.left, box.top, box.width, box.height, 0, 0, now.width, now.height);
  while (now.width > 2 * width && now.height > 2 * height && now.width > 1 && now.height > 1) {
    const half = new OffscreenCanvas(now.width >> 1, now.height >> 1);
    half.getContext("2d").drawImage(now, 0, 0, half.width, half.height);
    now = half;
  }
  target.drawImage(now, x, y, width, height);
}

function bounds(source) {
  const image = pen.getImageData(0, 0, pad.width, pad.height).data;
  if (source !== pad) return null;
  let left = pad.width, top = pad.height, right = -1, bottom = -1, mass = 0, x = 0, y = 0;
  for (let row = 0; row < pad.height; ++row) {
    for (let column = 0; column < pad.width; ++column) {
      const value = image[4 * (row * pad.width + column)];
      if (value < 32) continue;
      left = Math.min(left, column); right = Math.max(right, column);
      top = Math.min(top, row); bottom = Math.max(bottom, row);
      mass += value; x += value * column; y += value * row;
    }
  }
  if (right < left) return null;
  return {left, top, width: right - left + 1, height: bottom - top + 1, x: x / mass, y: y / mass};
}

function paint(canvas, data, channels, height, width) {
  canvas.width = width;
  canvas.height = height;
  const image = new ImageData(width, height);
  for (let i = 0; i < height * width; ++i) {
    for (let c = 0; c < 3; ++c) {
      image.data[4 * i + c] = channels === 2 && c === 2 ? 0 : data[(c < channels ? c : 0) * height * width + i];
    }
    image.data[4 * i + 3] = 255;
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
}

// ---- asking

async function ask(path, body) {
  if (running) return null;
  running = true;
  try {
    const headers = body ? {"Content-Type": "application/octet-stream"} : {};
    const reply = await fetch(path, {method: "POST", body, headers});
    const answer = await reply.json();
    one("error").textContent = answer.error ?? "";
    return reply.ok ? answer : null;
  } catch {
    one("error").textContent = "The server does not answer: see whether it still runs.";
    return null;
  } finally {
    running = false;
  }
}

async function send(source, centre) {
  if (running) { later(PAUSE); return; }
  const data = scaled(source, centre && facts.shape[0] === 1);
  paint(one("seen"), data, ...facts.shape);
  const answer = await ask("/api/picture", data);
  if (answer) show(answer);
}

async function replay(number) {
  at = (number + facts.samples) % facts.samples;
  const answer = await ask(`/api/sample/${at}`);
  if (!answer) return;
  drawn = false;
  one("place").textContent = `${at + 1} of ${facts.samples}`;
  paint(one("seen"), bytes(answer.input), ...facts.shape);
  pen.imageSmoothingEnabled = false;
  pen.drawImage(one("seen"), 0, 0, pad.width, pad.height);
  show(answer);
}

async function play() {
  while (playing) {
    await replay(at + 1);
    await new Promise(done => setTimeout(done, SECOND));
  }
}

function stop() {
  playing = false;
  one("play").setAttribute("aria-pressed", "false");
}

// ---- showing

function element(kind, text, className) {
  const made = document.createElement(kind);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function show(answer) {
  one("class").textContent = name(answer.class);
  const verdict = one("verdict"), labelled = answer.label !== undefined && answer.label !== null;
  const right = labelled && answer.label === answer.class;
  verdict.textContent = labelled ? (right ? "right" : `wrong: it is ${name(answer.label)}`) : "";
  verdict.classList.toggle("wrong", labelled && !right);
  bars(answer);
  const events = answer.layers.reduce((sum, layer) => sum + layer.events, 0);
  const figures = [["time", spoken(answer.seconds)]];
  if (answer.core_seconds !== null) {
    figures.push(["core", spoken(answer.core_seconds)], ["cycles", answer.cycles.toLocaleString("en")]);
  }
  figures.push(["events", events.toLocaleString("en")]);
  if (facts.where !== "golden model") figures.push(["golden model", answer.equal ? "equal" : "DIFFERS"]);
  one("figures").replaceChildren(...figures.map(([what, value]) => {
    const box = element("div");
    box.append(element("dt", what), element("dd", value));
    return box;
  }));
  one("layers").replaceChildren(...answer.layers.map(levels));
}

function bars(answer) {
  const low = Math.min(0, ...answer.logits), high = Math.max(1, ...answer.logits);
  const rows = answer.logits.map((value, number) => ({value, number}));
  if (rows.length > 12) rows.sort((a, b) => b.value - a.value).splice(12);
  one("logits").replaceChildren(...rows.map(({value, number}) => {
    const row = element("li", undefined, number === answer.class ? "best" : "");
    const bar = element("span", undefined, "bar");
    const picture = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    picture.setAttribute("viewBox", "0 0 100 1");
    picture.setAttribute("preserveAspectRatio", "none");
    const box = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    const zero = -low, from = Math.min(value, 0) - low, size = Math.abs(value);
    box.setAttribute("x", String(100 * (value < 0 ? from : zero) / (high - low)));
    box.setAttribute("width", String(100 * size / (high - low)));
    box.setAttribute("height", "1");
    picture.append(box);
    bar.append(picture);
    row.append(element("span", name(number), "name"), bar,
               element("span", value.toLocaleString("en"), "value"));
    return row;
  }));
}

function levels(layer) {
  const box = element("div", undefined, "layer"), text = element("div");
  const [channels, height, width] = layer.shape;
  text.append(element("h3", layer.name));
  const parts = [`${channels} × ${height} × ${width}`, `${percent(layer.active)} active`,
                 `${layer.events.toLocaleString("en")} events`, `largest level ${layer.largest}`];
  if (layer.shown < channels) parts.push(`first ${layer.shown} channels`);
  text.append(element("p", parts.join(", "), "note"));
  box.append(text, mosaic(layer));
  return box;
}

function mosaic(layer) {
  const data = bytes(layer.levels), [, height, width] = layer.shape;
  const alone = height * width === 1;
  const across = alone ? Math.min(layer.shown, 64) : Math.min(layer.shown, Math.max(1, Math.floor(160 / width)));
  const down = Math.ceil(layer.shown / across), gap = alone ? 0 : 1;
  const canvas = element("canvas");
  canvas.width = across * (width + gap) - gap;
  canvas.height = down * (height + gap) - gap;
  const zoom = alone ? 10 : Math.max(2, Math.min(6, Math.floor(640 / canvas.width)));
  canvas.style.width = `${zoom * canvas.width}px`;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `levels of ${layer.name}`);
  const brush = canvas.getContext("2d");
  for (let c = 0; c < layer.shown; ++c) {
    const tile = new ImageData(width, height);
    for (let i = 0; i < height * width; ++i) {
      const value = data[c * height * width + i];
      tile.data.set([value, Math.min(255, 30 + value * 0.9), Math.min(255, 34 + value * 0.85), 255], 4 * i);
    }
    brush.putImageData(tile, (c % across) * (width + gap), Math.floor(c / across) * (height + gap));
  }
  return canvas;
}

// ---- pictures

async function picture(file) {
  stop();
  let image;
  try {
    image = await createImageBitmap(file);
  } catch {
    one("error").textContent = "This is no picture that the browser can read: give a PNG or JPEG file.";
    return;
  }
  clear();
  const side = Math.min(image.width, image.height);
  pen.imageSmoothingEnabled = true;
  pen.drawImage(image, (image.width - side) / 2, (image.height - side) / 2, side, side, 0, 0, pad.width, pad.height);
  await send(image, false);
}

pad.addEventListener("dragover", event => { event.preventDefault(); pad.classList.add("over"); });
pad.addEventListener("dragleave", () => pad.classList.remove("over"));
pad.addEventListener("drop", event => {
  event.preventDefault();
  pad.classList.remove("over");
  if (facts?.static && event.dataTransfer.files.length) picture(event.dataTransfer.files[0]);
});
one("file").addEventListener("change", event => { if (event.target.files.length) picture(event.target.files[0]); });
one("clear").addEventListener("click", () => { stop(); clear(); });
one("next").addEventListener("click", () => { stop(); replay(at + 1); });
one("previous").addEventListener("click", () => { stop(); replay(at - 1); });
one("play").addEventListener("click", () => {
  playing = !playing;
  one("play").setAttribute("aria-pressed", String(playing));
  if (playing) play();
});

async function begin() {
  clear();
  facts = await (await fetch("/api/facts")).json();
  document.title = `${facts.model} – LBQ live`;
  one("model").textContent = facts.model;
  one("where").textContent = `on ${facts.where === "golden model" ? "the golden model" : facts.where}`;
  one("replay").hidden = facts.samples === 0;
  one("tools").hidden = !facts.static;
  if (!facts.static) one("hint").textContent = "This network takes recordings of an event camera: replay some.";
  if (facts.samples) await replay(0);
}

begin();
