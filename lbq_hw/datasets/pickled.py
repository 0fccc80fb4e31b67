"""The dictionaries of CIFAR's Python batches, read from their pickles without running anything.

A pickle is a program: it may name any function of any module and call it. The batches name three,
which make a numpy array. Here a name stands for itself alone: what a pickle calls becomes a
`_Value`, a record of the call, and arrays are made from these records once all has been read. Any
other name is an error before anything is called.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np

_ARRAY, _DTYPE = "numpy.core.multiarray._reconstruct", "numpy.dtype"
_NAMES = {_ARRAY, _DTYPE, "numpy.ndarray"}


class _Value:
    """What a pickle named and called: the name, the arguments, and the state given later."""

    __slots__ = ("arguments", "name", "state")

    def __init__(self, name: str, arguments: tuple[Any, ...] = ()) -> None:
        self.name, self.arguments, self.state = name, arguments, None

    def __call__(self, *arguments: Any) -> _Value:
        return _Value(self.name, arguments)

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _NameError(ValueError):
    """A pickle names what no batch needs."""


class _Unpickler(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str, /) -> _Value:
        name = f"{module_name}.{global_name}"
        if name not in _NAMES:
            raise _NameError(f"it asks for {name}, which no batch needs")
        return _Value(name)


def read_dictionary(data: bytes) -> dict[Any, Any]:
    """The dictionary in a pickle of Python 2, whose strings become bytes.

    Raises ValueError with what is wrong: a name that no batch needs, or anything but one
    dictionary.
    """
    try:
        found = _Unpickler(io.BytesIO(data), encoding="bytes").load()
    except _NameError:
        raise
    except Exception as error:  # Bytes that are no pickle raise nearly every kind.
        raise ValueError("it is not a complete pickle") from error
    if type(found) is not dict:
        raise ValueError("it is not a pickle of a dictionary")
    return found


def to_table(value: object) -> np.ndarray | None:
    """The table of bytes that an entry of the dictionary stands for; None if it is another."""
    match value:
        case _Value(
            name=name,
            state=(1, (int(rows), int(columns)), _Value() as kind, bool(fortran), bytes(raw)),
        ):
            filled = min(rows, columns) > 0 and rows * columns == len(raw)
            if filled and name == _ARRAY and kind.name == _DTYPE and kind.arguments[:1] == (b"u1",):
                order = "F" if fortran else "C"
                return np.frombuffer(raw, np.uint8).reshape((rows, columns), order=order)
    return None
