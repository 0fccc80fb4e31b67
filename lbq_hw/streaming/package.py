"""The package of a streaming core: a folder with ``stream.json``, the network and the bitstream."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

from lbq_hw import decode, file, package
from lbq_hw.network import Network
from lbq_hw.package import PackageError
from lbq_hw.streaming.compiler import compile_stream
from lbq_hw.streaming.config import StreamConfig
from lbq_hw.streaming.program import StreamProgram

MANIFEST, MODEL = "stream.json", "net.lbq"


@dataclass(frozen=True, kw_only=True, eq=False)
class StreamPackage:
    """A network, and the streaming core that it was compiled for."""

    folder: Path
    board: str
    clock_hz: int
    baud: int
    network: Network
    program: StreamProgram

    @property
    def config(self) -> StreamConfig:
        return self.program.config


@dataclass(frozen=True, kw_only=True)
class _Description:
    """The contents of `stream.json`."""

    board: str
    clock_hz: int
    baud: int
    horizon: int
    config: StreamConfig


def found(folder: Path) -> bool:
    """Whether a folder is the package of a streaming core."""
    return (folder / MANIFEST).is_file()


def read(folder: str | Path) -> StreamPackage:
    """Read a package; PackageError if the folder is not one, or its network is not for its core."""
    folder = Path(folder)
    path = folder / MANIFEST
    if not found(folder):
        raise PackageError(f"{folder} has no {MANIFEST}: it is not the package of a streaming core")
    try:
        facts: _Description = decode.reader(_Description)(package.read_json(path), "stream")
        package.check_line(path, board=facts.board, clock_hz=facts.clock_hz, baud=facts.baud)
        network = file.load(folder / MODEL)
        program = compile_stream(
            network,
            lanes=facts.config.lanes,
            units=facts.config.units,
            horizon=facts.horizon,
            config=facts.config,
        )
    except PackageError:
        raise
    except file.FileError as error:
        raise PackageError(str(error)) from error
    except (ValueError, OverflowError) as error:
        raise PackageError(f"{path}: {error}: build it again") from error
    return StreamPackage(
        folder=folder,
        board=facts.board,
        clock_hz=facts.clock_hz,
        baud=facts.baud,
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
