"""Stand-ins for yosys, nextpnr-ecp5 and ecppack: small scripts that write what the real ones would.

They are chosen by the tools' own variables. What they shall do beyond that is in ``FAKE_*``:
``FAKE_CALLS``, a file that gets a line a call; ``FAKE_FMAX``, MHz by seed as JSON, or 0 to go on
for ever; ``FAKE_FAIL``, the tool that fails with the text ``FAKE_ERROR``; ``FAKE_VERSION``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

_TOOL = (
    f"#!{sys.executable}\n"
    + """
import itertools, json, os, sys, time
from pathlib import Path

name, arguments = Path(sys.argv[0]).name, sys.argv[1:]
if arguments in (["-V"], ["--version"]):
    print(f"{name} {os.environ.get('FAKE_VERSION', '1.0.0')} (fake)")
    sys.exit()
with open(os.environ["FAKE_CALLS"], "a") as calls:
    calls.write(f"{name} {' '.join(arguments)}\\n")
given = dict(zip(arguments, arguments[1:]))
if os.environ.get("FAKE_FAIL") == name:
    print("Info: something before")
    print(os.environ["FAKE_ERROR"])
    sys.exit(1)
if name == "yosys":
    Path("netlist.json").write_text("netlist of " + Path("top.v").read_text())
    Path("cells.json").write_text(json.dumps({"design": {"num_cells_by_type": {"LUT4": 7}}}))
elif name == "nextpnr-ecp5":
    seed = given["--seed"]
    Path(given["--textcfg"]).write_text(f"seed {seed}: " + Path(given["--json"]).read_text())
    Path(given["--write"]).write_text("routed")
    fmax = json.loads(os.environ.get("FAKE_FMAX", "{}")).get(seed, 400.0)
    estimate = json.loads(os.environ.get("FAKE_ESTIMATE", "{}")).get(seed)
    if estimate:
        print("Info: Max frequency for clock 'lock': 900.00 MHz (PASS at 80.00 MHz)")
        print(f"Info: Max frequency for clock  'clk': {estimate:.2f} MHz (at 80.00 MHz)")
        print("Info: Running router2...", flush=True)
    while not fmax:
        pass
    for number in itertools.count(1) if fmax < 0 else ():
        print(f"Info:     iter={number} wires=9 overused=1 overuse=1 archfail=NA", flush=True)
        time.sleep(0.01)
    ends = [{"cell": "a_reg", "port": "Q"}, {"cell": "b_reg", "port": "D"}]
    path = {"type": "logic", "delay": 1e3 / fmax, "from": ends[0], "to": ends[1]}
    report = {
        "fmax": {"$glbnet$clk": {"achieved": fmax, "constraint": float(given["--freq"])}},
        "utilization": {"TRELLIS_COMB": {"used": 7, "available": 100}},
        "critical_paths": [{"from": "posedge clk", "to": "posedge clk", "path": [path]}],
    }
    Path(given["--report"]).write_text(json.dumps(report))
else:
    Path(given["--bit"]).write_text("bits of " + Path(given["--input"]).read_text())
"""
)


class Fakes:
    """The tools of one test."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._log, self._monkeypatch = folder / "calls", monkeypatch
        monkeypatch.setenv("FAKE_CALLS", str(self._log))
        for name, variable in (
            ("yosys", "YOSYS"),
            ("nextpnr-ecp5", "NEXTPNR_ECP5"),
            ("ecppack", "ECPPACK"),
        ):
            path = folder / name
            path.write_text(_TOOL, encoding="utf-8")
            path.chmod(0o755)
            monkeypatch.setenv(variable, str(path))

    def calls(self) -> list[str]:
        """Names of the tools that ran since this was last asked."""
        lines = self._log.read_text("utf-8").splitlines() if self._log.exists() else []
        self._log.write_text("", encoding="utf-8")
        return [line.split()[0] for line in lines]

    def fmax(self, **by_seed: float) -> None:
        """MHz that place and route reaches, by ``seed1`` and so on.

        0: it finds no place, and says nothing; below 0: it finds no way for its wires.
        """
        values = {name.removeprefix("seed"): value for name, value in by_seed.items()}
        self._monkeypatch.setenv("FAKE_FMAX", json.dumps(values))

    def estimate(self, **by_seed: float) -> None:
        """MHz that place and route expects when it begins to route."""
        values = {name.removeprefix("seed"): value for name, value in by_seed.items()}
        self._monkeypatch.setenv("FAKE_ESTIMATE", json.dumps(values))

    def fail(self, name: str, error: str) -> None:
        """Let a tool fail."""
        self._monkeypatch.setenv("FAKE_FAIL", name)
        self._monkeypatch.setenv("FAKE_ERROR", error)

    def mend(self) -> None:
        """Let no tool fail."""
        self._monkeypatch.delenv("FAKE_FAIL")

    def version(self, text: str) -> None:
        """Let all tools be of this version."""
        self._monkeypatch.setenv("FAKE_VERSION", text)
