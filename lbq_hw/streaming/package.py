"""A folder with what the host needs of a streaming core: ``stream.json``, the network, the bits."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

from lbq_hw import decode, file
from lbq_hw.network import Network
from lbq_hw.streaming.compiler import compile_stream
from lbq_hw.streaming.config import StreamConfig
from lbq_hw.streaming.program import StreamProgram

MANIFEST, MODEL = "stream.json", "net.lbq"
_KEYS = ("board", "clock_hz", "baud", "horizon", "config")


@dataclass(frozen=True, kw_only=True, eq=False)
class StreamPackage:
    """A network and the streaming core that it is for."""

    folder: Path
    board: str
    clock_hz: int
    baud: int
    network: Network
    program: StreamProgram

    @property
    def config(self) -> StreamConfig:
        return self.program.config


def found(folder: Path) -> bool:
    """Whether a folder is the package of a streaming core."""
    return (folder / MANIFEST).is_file()


def read(folder: str | Path) -> StreamPackage:
    """ValueError if the folder is none, or its network is not for its core."""
    folder = Path(folder)
    if not found(folder):
        raise ValueError(f"{folder} has no {MANIFEST}: it is not the package of a streaming core")
    try:
        values = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{folder / MANIFEST} must be JSON: {error}") from None
    decode.check_keys(values, str(folder / MANIFEST), list(_KEYS))
    config = StreamConfig.from_dict(values["config"])
    network = file.load(folder / MODEL)
    program = compile_stream(
        network,
        lanes=config.lanes,
        units=config.units,
        horizon=values["horizon"],
        config=config,
    )
    return StreamPackage(
        folder=folder,
        board=values["board"],
        clock_hz=values["clock_hz"],
        baud=values["baud"],
        network=network,
        program=program,
    )


def write(
    folder: Path,
    *,
    board: str,
    clock_hz: int,
    baud: int,
    horizon: int,
    config: StreamConfig,
    model: Path,
    bitstream: Path | None = None,
) -> None:
    """Make a package; `horizon` as in `compile_stream`, for the same core."""
    folder.mkdir(parents=True, exist_ok=True)
    line = {"board": board, "clock_hz": clock_hz, "baud": baud}
    values = {**line, "horizon": horizon, "config": asdict(config)}
    (folder / MANIFEST).write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
    shutil.copyfile(model, folder / MODEL)
    if bitstream is not None:
        shutil.copyfile(bitstream, folder / bitstream.name)
