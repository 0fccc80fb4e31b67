"""Reads the dictionaries of CIFAR's Python batches from their pickles without executing code.

A pickle is a program: it may name any function of any module and call it. The batches name three
functions, which build a numpy array. This reader calls none of them: each call becomes a `_Value`,
a record of the call, and arrays are made from these records at the end. Any other name is an error
before anything is called.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np

_ARRAY, _DTYPE = "numpy.core.multiarray._reconstruct", "numpy.dtype"
_NAMES = {_ARRAY, _DTYPE, "numpy.ndarray"}


class _Value:
    """A recorded call of a pickle: the name, the arguments, and the state set afterwards."""

    __slots__ = ("arguments", "name", "state")

    def __init__(self, name: str, arguments: tuple[Any, ...] = ()) -> None:
        self.name, self.arguments, self.state = name, arguments, None

    def __call__(self, *arguments: Any) -> _Value:
        return _Value(self.name, arguments)

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _NameError(ValueError):
    """A pickle names a function that no batch needs."""


class _Unpickler(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str, /) -> _Value:
        name = f"{module_name}.{global_name}"
        if name not in _NAMES:
            raise _NameError(f"it asks for {name}, which no batch needs")
        return _Value(name)


def read_dictionary(data: bytes) -> dict[Any, Any]:
    """The dictionary in a Python 2 pickle; strings become bytes.

    Raises ValueError with the reason if the pickle has a name that no batch needs, or is not a
    single dictionary.
    """
    try:
        found = _Unpickler(io.BytesIO(data), encoding="bytes").load()
    except _NameError:
        raise
    except Exception as error:  # Bytes that are not a pickle raise nearly every kind of error.
        raise ValueError("it is not a complete pickle") from error
    if type(found) is not dict:
        raise ValueError("it is not a pickle of a dictionary")
    return found


def to_table(value: object) -> np.ndarray | None:
    """The table of bytes that an entry of the dictionary stands for; None if it is not a table."""
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
