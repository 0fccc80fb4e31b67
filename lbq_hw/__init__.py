"""Learned burst quantization, deployed: integer network, golden model, compiler, core."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("lbq-hw")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+unknown"
