"""A package: a folder with all files that the host needs to use a board.

`package.json` describes the other files and has the SHA-256 of each. `net.lbq` is the network.
There are also the bitstream (not for the board `sim`), and a self-test, which needs no dataset. For
a core with external memory, `tape.bin` has the contents of that memory from byte 0 on.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
import stat
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbq_hw import decode, file, selftest
from lbq_hw.chips import CHIPS, Chip
from lbq_hw.compiler import Program, compile_network, program_of_tape
from lbq_hw.config import CoreConfig
from lbq_hw.datasets import meaning
from lbq_hw.decode import DecodeError, shown
from lbq_hw.isa import contents, regions
from lbq_hw.isa.door import Opening
from lbq_hw.isa.tape import TapeError
from lbq_hw.network import Network, NetworkError
from lbq_hw.network.manifest import unique
from lbq_hw.selftest import SelfTest

FORMAT = "lbq-package"
VERSION = 3
MANIFEST = "package.json"
MODEL = "net.lbq"
SELFTEST = "selftest.safetensors"
TAPE = "tape.bin"
MAX_MANIFEST = 1 << 20
"""The largest size of `package.json` in bytes."""
MAX_CLOCK_HZ = 10**9
MAX_BAUD = 10**8
MAX_RATES = 16
MAX_MEMORY_BITS = 1 << 28
"""Bits of a core's weights and activations: twice the needs of the zoo's largest network."""
_AGAIN = "build it again"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")  # name of a board or a file, never a path


class PackageError(ValueError):
    """A package cannot be read or written; the message is one sentence."""


@dataclass(frozen=True, kw_only=True)
class ExternalMemory:
    """The memory that holds a tape: the name of its chip in `lbq_hw.chips`, and its size, of which
    the tape takes the first `tape_bytes`. `own` has the members of a chip that the user's own board
    file describes.
    """

    chip: str
    bytes: int
    tape_bytes: int
    own: dict[str, Any] | None = None

    def described(self) -> Chip:
        """The chip; ValueError or TypeError if the name is unknown or `own` is not a valid chip."""
        if self.own is not None:
            return Chip(**self.own)
        for chip in CHIPS:
            if chip.name == self.chip:
                return chip
        raise ValueError(f"there is no chip {self.chip!r}")


@dataclass(frozen=True, kw_only=True)
class Package:
    """A bitstream, the core in it, and the network for it.

    `clock_hz` is the core's clock, `baud` the rate of its link after a reset. `rates` are the rates
    that the board's USB bridge supports, highest first; empty if the bridge is unknown. `opening`
    describes the core's door, if it has one. `baked`: the network is in the bitstream. `bitstream`
    is None for the board `sim`. `selftest` has a few inputs with their logits; None in a package
    without a self-test. `tape` is empty for a core without external memory; `memory` describes that
    memory, and is None in packages of older versions.
    """

    board: str
    config: CoreConfig
    network: Network
    clock_hz: int
    baud: int
    baked: bool
    bitstream: Path | None
    selftest: SelfTest | None
    tape: bytes
    memory: ExternalMemory | None
    folder: Path
    rates: tuple[int, ...] = ()
    opening: Opening | None = None

    @cached_property
    def program(self) -> Program:
        """The program of the core; if there is a tape, it is read from the tape."""
        if self.tape:
            return program_of_tape(self.network, self.config, self.tape)
        return compile_network(self.network, self.config)


@dataclass(frozen=True, kw_only=True)
class _Description:
    """The contents of `package.json`."""

    format: str
    version: int
    board: str
    config: dict[str, Any]
    clock_hz: int
    baud: int
    baked: bool
    model: str
    bitstream: str | None
    sha256: dict[str, str]
    selftest: str | None = None
    tape: str | None = None
    memory: ExternalMemory | None = None
    class_names: tuple[str, ...] = ()
    rates: tuple[int, ...] = ()
    opening: Opening | None = None


def read(folder: str | os.PathLike[str]) -> Package:
    """Read a package; PackageError if a file is missing, altered, or of another version."""
    folder = Path(folder)
    facts = _description(folder / MANIFEST)
    names = (facts.model, facts.bitstream, facts.selftest, facts.tape)
    packed = {name for name in names if name is not None}
    if set(facts.sha256) != packed:
        raise PackageError(
            f"{folder / MANIFEST} must give the sha256 of its model, its bitstream, its "
            f"self-test and its tape, and of nothing else: {_AGAIN}"
        )
    for name, digest in facts.sha256.items():
        if _sha256(folder / name) != digest:
            raise PackageError(f"{folder / name} is not the file that was packed: {_AGAIN}")
    try:
        config = CoreConfig.from_dict(facts.config)
        bits = config.weight_rows * config.lanes * config.weight_bits
        bits += config.plane_words * config.word
        if bits > MAX_MEMORY_BITS:
            raise ValueError(f"a core of {bits} bits is more than {MAX_MEMORY_BITS}")
        network = file.load(folder / facts.model)
    except file.FileError as error:
        raise PackageError(str(error)) from error
    except (TypeError, ValueError) as error:
        raise PackageError(f"{folder / MANIFEST}: {str(error)[:300]}: {_AGAIN}") from error
    if facts.class_names and facts.class_names != meaning.class_names(network):
        raise PackageError(f"{folder / MANIFEST} names other classes than its model: {_AGAIN}")
    try:
        test = None if facts.selftest is None else selftest.load(folder / facts.selftest, network)
    except ValueError as error:
        raise PackageError(f"{error}: {_AGAIN}") from error
    tape = _read_tape(folder, facts.tape, config)
    _check_hardware(folder / MANIFEST, facts, config, tape)
    return Package(
        board=facts.board,
        config=config,
        network=network,
        clock_hz=facts.clock_hz,
        baud=facts.baud,
        baked=facts.baked,
        bitstream=None if facts.bitstream is None else folder / facts.bitstream,
        selftest=test,
        tape=tape,
        memory=facts.memory,
        folder=folder,
        rates=facts.rates,
        opening=facts.opening,
    )


def write(
    folder: str | os.PathLike[str],
    *,
    board: str,
    config: CoreConfig,
    model: Path,
    clock_hz: int,
    baud: int,
    baked: bool,
    bitstream: Path | None,
    images: NDArray[np.uint8] | None = None,
    tape: bytes = b"",
    chip: Chip | None = None,
    rates: tuple[int, ...] = (),
    opening: Opening | None = None,
) -> Package:
    """Write a package, completely or not at all; an existing package is replaced at the end.

    `images` are raw inputs; the package gets a self-test of them and their logits. For a core with
    external memory, `tape` is the program's tape and `chip` the memory. `rates` are the rates of
    the board's USB bridge, `opening` describes the core's door.
    """
    folder = Path(folder)
    token = secrets.token_hex(4)
    partial = folder.parent / f".{folder.name}.{token}"
    old = folder.parent / f".{folder.name}.{token}.old"
    facts: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "board": board,
        "config": config.to_dict(),
        "clock_hz": clock_hz,
        "baud": baud,
        "baked": baked,
        "model": MODEL,
        "bitstream": None if bitstream is None else f"{board}{bitstream.suffix}",
        "selftest": None if images is None else SELFTEST,
        "tape": TAPE if tape else None,
        "memory": _memory(tape, chip),
        "class_names": [],
        "rates": list(rates),
        "opening": None if opening is None else asdict(opening),
        "sha256": {},
    }
    try:
        try:
            partial.mkdir(parents=True)
            for name, source in ((facts["model"], model), (facts["bitstream"], bitstream)):
                if source is not None:
                    if not source.is_file():
                        raise PackageError(f"{source} must be a file to be packed")
                    shutil.copyfile(source, partial / name)
                    facts["sha256"][name] = _sha256(partial / name)
            network = _network(partial / MODEL)
            facts["class_names"] = list(meaning.class_names(network))
            if images is not None:
                selftest.save(selftest.make(network, images), partial / SELFTEST)
                facts["sha256"][SELFTEST] = _sha256(partial / SELFTEST)
            if tape:
                (partial / TAPE).write_bytes(tape)
                facts["sha256"][TAPE] = _sha256(partial / TAPE)
            text = json.dumps(facts, indent=2, sort_keys=True) + "\n"
            (partial / MANIFEST).write_text(text, encoding="utf-8")
            read(partial)
            if folder.exists():
                if not (folder / MANIFEST).is_file():
                    raise PackageError(
                        f"{folder} exists and is not a package: choose another folder"
                    )
                folder.rename(old)
            partial.rename(folder)
        finally:
            if old.exists() and not folder.exists():
                old.rename(folder)
            shutil.rmtree(partial, ignore_errors=True)
            shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise PackageError(
            f"{folder} cannot be written ({error.strerror or error}): choose a folder with room"
        ) from error
    return read(folder)


def _memory(tape: bytes, chip: Chip | None) -> dict[str, Any] | None:
    if not tape or chip is None:
        return None
    found = {"chip": chip.name, "bytes": chip.size_bytes, "tape_bytes": len(tape)}
    return found if chip in CHIPS else found | {"own": asdict(chip)}


def _network(model: Path) -> Network:
    try:
        return file.load(model)
    except file.FileError as error:
        raise PackageError(str(error)) from error


def _read_tape(folder: Path, name: str | None, config: CoreConfig) -> bytes:
    if (name is None) == bool(config.external):
        what = "external memory and no tape" if name is None else "a tape and no external memory"
        raise PackageError(f"{folder / MANIFEST} describes a core with {what}: {_AGAIN}")
    if name is None:
        return b""
    try:
        if (folder / name).stat().st_size > 4 * regions.MEMORY_SLICES:
            raise TapeError(f"it has more than {4 * regions.MEMORY_SLICES} bytes")
        data = (folder / name).read_bytes()
        contents.check(config, data)
    except TapeError as error:
        raise PackageError(
            f"{folder / name} is not a tape for this core ({error}): {_AGAIN}"
        ) from None
    except OSError as error:
        raise PackageError(
            f"{folder / name} cannot be read ({error.strerror}): {_AGAIN}"
        ) from error
    return data


def _check_hardware(path: Path, facts: _Description, config: CoreConfig, tape: bytes) -> None:
    """Refuse an external memory or a door that does not match the core and its tape."""
    if (memory := facts.memory) is not None:
        if memory.tape_bytes != len(tape):
            raise _cannot_be(path, "memory.tape_bytes", memory.tape_bytes)
        if memory.described().data_bits != config.external:
            raise _cannot_be(path, "memory.chip", memory.chip)
    if facts.opening is not None and not facts.opening.pixels.fits(config):
        raise PackageError(f"{path} has a door that does not match its core: {_AGAIN}")


def read_json(path: Path) -> Any:
    """The JSON of a package; PackageError if it is not JSON, or has a key twice."""
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_MANIFEST:
            raise ValueError("it is not a small file")
        return json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=unique)
    except FileNotFoundError:
        folder = path.parent
        if not folder.exists():
            raise PackageError(
                f"there is no {folder}: lbq build makes it; a build that was stopped by --until "
                "has none"
            ) from None
        raise PackageError(f"{folder} is not a package: it has no {path.name}") from None
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or "not JSON"
        reason = "a key comes twice" if isinstance(error, NetworkError) else reason
        raise PackageError(f"{path} cannot be read ({reason}): {_AGAIN}") from error


def check_line(path: Path, *, board: str, clock_hz: int, baud: int) -> None:
    """Refuse an invalid name of a board, clock or rate."""
    for key, value, most in (("clock_hz", clock_hz, MAX_CLOCK_HZ), ("baud", baud, MAX_BAUD)):
        if not 1 <= value <= most:
            raise _cannot_be(path, key, value)
    if not _NAME.fullmatch(board):
        raise _cannot_be(path, "board", board)


def _description(path: Path) -> _Description:
    facts = read_json(path)
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        raise PackageError(f"{path} does not describe a package: {_AGAIN}")
    version = facts.get("version")
    if version in (1, 2):
        why = _outdated(version, str(facts.get("bitstream")), facts.get("tape"))
        raise PackageError(f"{path} has version {version}, and {why}: {_AGAIN}")
    if version != VERSION:
        raise PackageError(f"{path} must have version {VERSION}, not {shown(version)}: {_AGAIN}")
    try:
        described: _Description = decode.reader(_Description)(facts, "package")
    except DecodeError as error:
        raise PackageError(f"{path}: {error}: {_AGAIN}") from None
    check_line(path, board=described.board, clock_hz=described.clock_hz, baud=described.baud)
    rates = described.rates
    if not all(1 <= rate <= MAX_BAUD for rate in rates) or len(rates) > MAX_RATES:
        raise _cannot_be(path, "rates", rates)
    if (memory := described.memory) is not None:
        try:
            chip = memory.described()
        except (TypeError, ValueError) as error:
            raise _cannot_be(path, "memory.chip", memory.chip) from error
        if chip.name != memory.chip:
            raise _cannot_be(path, "memory.chip", memory.chip)
        if not 1 <= memory.tape_bytes <= memory.bytes:
            raise _cannot_be(path, "memory.tape_bytes", memory.tape_bytes)
        if memory.bytes != chip.size_bytes:
            raise _cannot_be(path, "memory.bytes", memory.bytes)
    for key in ("model", "bitstream", "selftest", "tape"):
        name = getattr(described, key)
        if name is not None and not _NAME.fullmatch(name):
            raise _cannot_be(path, key, name)
    return described


def _outdated(version: int, bitstream: str, tape: object) -> str:
    """Why a package of an earlier version cannot be used."""
    if version == 1 and Path(bitstream).suffix == ".bit":
        return "in bitstreams of that version the PLL of an ECP5 does not start"
    if version == 1 and tape is not None:
        return "cores of that version do not tell how they read their external memory"
    return "cores of that version have no profile, which tells their timing"


def _cannot_be(path: Path, key: str, value: Any) -> PackageError:
    return PackageError(f"{path} has {key} = {shown(value)}, which is not possible: {_AGAIN}")


def _sha256(path: Path) -> str:
    try:
        found = path.stat()  # before it is opened: a pipe would wait for a writer
        if not stat.S_ISREG(found.st_mode) or found.st_size > file.MAX_BYTES:
            raise PackageError(f"{path} must be a file of at most {file.MAX_BYTES} bytes")
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except FileNotFoundError:
        raise PackageError(f"{path} is missing: {_AGAIN}") from None
    except OSError as error:
        raise PackageError(f"{path} cannot be read ({error.strerror}): {_AGAIN}") from error
