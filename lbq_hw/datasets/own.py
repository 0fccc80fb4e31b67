"""The user's own data: arrays in an .npz file, or pictures in one folder per class.

An .npz file has `images`, uint8, and `labels`, integers from 0 on. Gray images are (n, H, W),
others (n, C, H, W) or (n, H, W, C); recordings have T after n. If the shape does not determine the
order of the axes, the user must give it (`lbq_hw.datasets.reading`), or the file as an entry
`layout`, nchw or nhwc. A divided file has `test_images` and `test_labels`; its training images are
`train_images` and `train_labels`, or `images` and `labels`. Two more entries are optional:
`class_names`, strings in the order of labels, and `full_scale`, the value of full scale.

A folder of pictures has one subfolder of PNG and JPEG files per class; if it is divided, it has
`train` and `test`, each with such subfolders. A class has the name of its folder. Classes are
numbered in the order of their names, by value if all names are numbers. An empty folder is a class
too; hidden folders and folders that a system makes, such as `__MACOSX`, are ignored. Pictures
become gray or RGB and are resized.
"""

from __future__ import annotations

import stat
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lbq_hw.commands import extras
from lbq_hw.datasets.base import SPLITS, WHOLE, Dataset, DatasetError
from lbq_hw.datasets.reading import (
    LAYOUTS,
    Background,
    Layout,
    Reading,
    Shape,
    channels_first,
    is_hidden,
    opaque,
    unread,
)
from lbq_hw.decode import shown
from lbq_hw.network.limits import MAX_NAME

if TYPE_CHECKING:
    from PIL import Image

NPZ, IMAGES = "npz", "images"
NAMES = (NPZ, IMAGES)
_WHOLE = ("images", "labels")
_READ = {"labels", "train_labels", "test_labels", "layout", "class_names", "full_scale"}
"""Arrays that are read for every split."""
WHITE = 255
"""The value of full scale in a picture."""
_SUFFIXES = (".png", ".jpg", ".jpeg")
_MODES = {1: "L", 3: "RGB"}
_MOST_CLASSES = 1 << 15
_LARGE = 1 << 28  # bytes of an array up to which any compression is accepted
_MANY = 1 << 24  # pixels of a picture up to which any compression is accepted
_PACKED = 100  # largest compression ratio of a larger array or picture
# numpy parses a header as Python, and zipfile has its own errors for unsupported features.
_UNREADABLE = (
    OSError, ValueError, EOFError, MemoryError, RuntimeError, tokenize.TokenError,
    zipfile.BadZipFile, zlib.error,
)  # fmt: skip
# Pillow raises SyntaxError for a broken PNG file, and almost anything for broken EXIF data.
_NO_PICTURE = (
    OSError, ValueError, SyntaxError, TypeError, LookupError, ArithmeticError, EOFError,
    MemoryError, struct.error, zlib.error,
)  # fmt: skip


def load(
    name: str,
    root: Path | None,
    *,
    split: str,
    timesteps: int | None,
    shape: Shape | None,
    reading: Reading,
) -> Dataset:
    """One split, or all of a file or folder that is not divided.

    `timesteps` is the number of frames that a recording must have. Pictures are resized to the
    `shape` (C, H, W); if the axes of an array can be read in two ways, the way that gives this
    shape is taken.
    """
    if root is None:
        what = "an .npz file" if name == NPZ else "a folder of pictures"
        raise DatasetError(f"dataset {name!r} needs the path of {what}: give --data")
    if name == NPZ:
        return _load_npz(root, split, timesteps, shape, reading.layout)
    if shape is None:
        raise ValueError("shape must be given for pictures, not None")
    return _load_pictures(root, split, shape, reading.background)


def is_divided(name: str, root: Path) -> bool:
    """Whether training and test images are separate."""
    if name == NPZ:
        with _opened(root) as arrays:
            return _is_divided(set(arrays))
    return _class_folders(root)[0] != dict.fromkeys(SPLITS, root)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """The arrays of an .npz file; DatasetError if it cannot be read."""
    if not path.is_file():
        raise DatasetError(f"{path} is not a file: give the path of an .npz file")
    try:
        with path.open("rb") as stream:
            arrays = np.load(stream, allow_pickle=False)
            if isinstance(arrays, np.ndarray):
                raise ValueError("one array without a name")
            for entry in arrays.zip.infolist():
                _check_entry(entry)
            yield arrays
    except _UNREADABLE as error:
        raise DatasetError(
            f"{path} cannot be read ({error}): write it with numpy.savez(file, images=..., "
            "labels=...)"
        ) from error


def _check_entry(entry: zipfile.ZipInfo) -> None:
    """Refuse an entry that is not an array, or that unpacks from a small file to a huge array."""
    if not entry.filename.endswith(".npy"):
        raise ValueError(f"{entry.filename!r} in it is not an array")
    if entry.file_size > max(_LARGE, _PACKED * entry.compress_size):
        raise ValueError(
            f"{entry.filename!r} in it would take {entry.file_size >> 20} MB of memory and is "
            f"packed to {entry.compress_size >> 10} kB, as pictures never are"
        )


def _array(arrays: Any, name: str) -> NDArray[Any]:
    """One array; for an entry that is not an array, numpy returns bytes."""
    found = arrays[name]
    if not isinstance(found, np.ndarray):
        raise ValueError(f"{name!r} in it is not an array")
    return found


def _is_divided(keys: set[str]) -> bool:
    """Whether the arrays of these names belong to more than one split."""
    return bool(keys & {"test_images", "test_labels"}) or not set(_WHOLE) <= keys


def _arrays_of(path: Path, keys: set[str], split: str) -> tuple[str, str]:
    """The names of a split's images and labels."""
    names = f"{split}_images", f"{split}_labels"
    if set(_WHOLE) & keys and {"train_images", "train_labels"} & keys:
        raise DatasetError(
            f"{path} has training images twice, as images and as train_images: leave out one"
        )
    if not _is_divided(keys) or (split == "train" and set(_WHOLE) <= keys):
        return _WHOLE
    if not set(names) <= keys:
        raise DatasetError(
            f"{path} must have the arrays images and labels, or {names[0]} and {names[1]}, not "
            f"{', '.join(sorted(keys)) or 'none'}"
        )
    return names


def _load_npz(
    path: Path, split: str, timesteps: int | None, shape: Shape | None, layout: Layout | None
) -> Dataset:
    with _opened(path) as arrays:
        keys = set(arrays)
        names = _arrays_of(path, keys, split)
        found = {key: _array(arrays, key) for key in sorted(keys & _READ | set(names))}
    images, labels = found[names[0]], found[names[1]]
    others = [array for key, array in found.items() if key.endswith("labels")]
    layout = _layout(path, found["layout"], layout) if "layout" in keys else layout
    class_names = _class_names(path, found["class_names"]) if "class_names" in keys else ()
    full_scale = _full_scale(path, found["full_scale"]) if "full_scale" in keys else None
    labels = _labels(path, names[1], labels)
    every = np.concatenate([_labels(path, "labels", other) for other in others])
    classes = 1 + int(every.max())
    if class_names and len(class_names) < classes:
        raise DatasetError(
            f"{path}: class_names must name all of the {classes} classes, not {len(class_names)}"
        )
    classes = max(classes, len(class_names))
    if split == "train" and every.min():
        raise DatasetError(
            f"{path}: labels are {every.min()} to {every.max()}, but classes are counted from 0: "
            f"write them as labels - {every.min()}"
        )
    images = _images(path, names[0], images, timesteps, shape, layout)
    if len(images) != len(labels):
        raise DatasetError(
            f"{path} must have as many labels as images, not {len(labels)} and {len(images)}"
        )
    return Dataset(
        name=NPZ,
        images=images,
        labels=labels,
        classes=classes,
        class_names=class_names,
        full_scale=full_scale,
        split=split if _is_divided(keys) else WHOLE,
    )


def _class_names(path: Path, names: NDArray[Any]) -> tuple[str, ...]:
    if names.ndim != 1 or not names.size or names.dtype.kind != "U":
        raise DatasetError(f"{path}: class_names must be strings, one per class")
    found = tuple(names.tolist())
    if len(set(found)) < len(found):
        raise DatasetError(f"{path}: class_names must differ from one another")
    _check_names(path, found)
    return found


def _check_names(place: Path, names: Iterable[str]) -> None:
    """Refuse names of classes that no network could have."""
    for name in names:
        if not (1 <= len(name) <= MAX_NAME and name.isprintable()):
            raise DatasetError(
                f"{place}: a class's name must be 1 to {MAX_NAME} printable characters, not "
                f"{shown(name)}"
            )


def _full_scale(path: Path, value: NDArray[Any]) -> int:
    whole = value.ndim == 0 and np.issubdtype(value.dtype, np.integer)
    if not whole or not 1 <= int(value) <= WHITE:
        raise DatasetError(f"{path}: full_scale must be one integer of 1 to {WHITE}")
    return int(value)


def _layout(path: Path, entry: NDArray[Any], told: Layout | None) -> Layout:
    """The layout in a file's entry; the user must not contradict it."""
    said = str(entry) if entry.shape == () else ""
    if said == "nchw" or said == "nhwc":
        found: Layout = said
    else:
        raise DatasetError(f"{path}: layout must be {' or '.join(LAYOUTS)}, not {entry}")
    if told not in (None, found):
        raise DatasetError(f"{path} says that its layout is {found}, not {told}: leave out one")
    return found


def _labels(path: Path, name: str, labels: NDArray[Any]) -> NDArray[np.int64]:
    numbers = labels.ndim == 1 and labels.size and np.issubdtype(labels.dtype, np.integer)
    if not numbers or int(labels.min()) < 0 or int(labels.max()) >= _MOST_CLASSES:
        raise DatasetError(
            f"{path}: {name} must be one integer from 0 to {_MOST_CLASSES - 1} per image"
        )
    return labels.astype(np.int64)


def _images(
    path: Path,
    name: str,
    images: NDArray[Any],
    timesteps: int | None,
    shape: Shape | None,
    layout: Layout | None,
) -> NDArray[np.uint8]:
    if images.dtype != np.uint8:
        raise DatasetError(f"{path}: {name} must be uint8, 0 to 255, not {images.dtype}")
    if images.ndim not in (3, 4, 5) or not images.size:
        raise DatasetError(
            f"{path}: {name} must be of shape (n, C, H, W), (n, H, W) or (n, T, C, H, W), not "
            f"{images.shape}"
        )
    if images.ndim == 3:
        images = images[:, None]
    else:
        images = channels_first(images, layout=layout, wanted=shape, place=f"{path}: {name}")
    if images.ndim == 5 and timesteps is not None and images.shape[1] != timesteps:
        raise DatasetError(
            f"{path}: the recordings must have {timesteps} frames, not {images.shape[1]}"
        )
    return np.ascontiguousarray(images)


def _class_folders(root: Path) -> tuple[dict[str, Path], list[str]]:
    """The folder of each split, and the names of all classes."""
    if not root.is_dir():
        raise DatasetError(f"{root} is not a folder: give a folder with one subfolder per class")
    places: dict[str, Path] = {s: root / s for s in SPLITS if _folders(root / s)}
    if not places:
        places = dict.fromkeys(SPLITS, root)
    found = {name for place in places.values() for name in _folders(place)}
    if not found:
        raise DatasetError(
            f"{root} has no subfolders: put the pictures of each class into a subfolder"
        )
    _check_names(root, sorted(found))
    by_value = all(name.isascii() and name.isdecimal() for name in found)
    return places, sorted(found, key=lambda name: (int(name) if by_value else 0, name))


def _folders(place: Path) -> list[str]:
    if not place.is_dir():
        return []
    return [path.name for path in place.iterdir() if path.is_dir() and not is_hidden(path.name)]


def _load_pictures(root: Path, split: str, shape: Shape, background: Background | None) -> Dataset:
    places, classes = _class_folders(root)
    if split not in places:
        raise DatasetError(f"{root} has no folder {split!r} beside {next(iter(places))!r}")
    found = [
        (path, label)
        for label, name in enumerate(classes)
        if (places[split] / name).is_dir()
        for path in sorted((places[split] / name).iterdir())
        if path.suffix.lower() in _SUFFIXES
    ]
    if not found:
        raise DatasetError(f"{places[split]} has no pictures: PNG and JPEG files are read")
    images = np.empty((len(found), *shape), np.uint8)
    for number, (path, _) in enumerate(found):
        images[number] = read_picture(path, shape, background)
    labels = np.array([label for _, label in found], np.int64)
    left = unread(root, {place / name for place in places.values() for name in classes}, _SUFFIXES)
    return Dataset(
        name=IMAGES,
        images=images,
        labels=labels,
        classes=len(classes),
        class_names=tuple(classes),
        full_scale=WHITE,
        split=split if places != dict.fromkeys(SPLITS, root) else WHOLE,
        notes=() if left is None else (left,),
    )


def read_picture(
    path: Path, shape: Shape, background: Background | None = None
) -> NDArray[np.uint8]:
    """A picture as (C, H, W): gray or RGB, upright, resized; transparent pixels get the color of
    the background."""
    channels, height, width = shape
    if channels not in _MODES:
        raise DatasetError(f"a picture has 1 or 3 channels, the network takes {channels}")
    try:
        from PIL import Image, ImageOps
    except ModuleNotFoundError as error:
        raise DatasetError(extras.remedy(error)) from None
    try:
        with _opened_picture(path) as picture:
            if picture.mode.startswith(("I", "F")):
                raise ValueError("more than 8 bits per channel")
            whole = opaque(ImageOps.exif_transpose(picture), background, path)
            upright = whole.convert(_MODES[channels])
            resized = upright.resize((width, height), Image.Resampling.BILINEAR)
            pixels = np.asarray(resized, np.uint8).reshape(height, width, channels)
    except (*_NO_PICTURE, Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        reason = getattr(error, "strerror", None) or error
        raise DatasetError(
            f"{path} cannot be read as a picture ({reason}): give a PNG or JPEG file"
        ) from error
    return pixels.transpose(2, 0, 1)


@contextmanager
def _opened_picture(path: Path) -> Iterator[Image.Image]:
    """An open picture, before its pixels are read; a picture that would fill the memory is refused.

    Pillow's warnings about large pictures become errors; broken EXIF data is ignored.
    """
    from PIL import Image

    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise ValueError("not a plain file")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        with Image.open(path, formats=("PNG", "JPEG")) as picture:
            pixels = picture.width * picture.height
            if pixels > max(_MANY, _PACKED * found.st_size):
                raise ValueError(f"it has {pixels} pixels in {found.st_size} bytes")
            yield picture


def read_raw(path: Path, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Inputs of this shape from a .npy file: one, or several along a first axis.

    A channel axis of size 1, the third from the end, may be left out.
    """
    try:
        with path.open("rb") as stream:
            found = np.lib.format.read_array(stream, allow_pickle=False)
    except _UNREADABLE as error:
        reason = getattr(error, "strerror", None) or error
        raise DatasetError(
            f"{path} cannot be read ({reason}): write it with numpy.save(file, images)"
        ) from error
    forms = [shape, (*shape[:-3], *shape[-2:])] if shape[-3] == 1 else [shape]
    fits = any(form in (found.shape, found.shape[1:]) for form in forms)
    if found.dtype != np.uint8 or not fits or not found.size:
        raise DatasetError(
            f"{path} must be uint8 of shape {shape}, or several of them along a first axis, not "
            f"{found.dtype} of {found.shape}"
        )
    return found.reshape(-1, *shape)
