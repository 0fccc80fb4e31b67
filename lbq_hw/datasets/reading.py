"""How the user's own data is read if its files are ambiguous.

If the axes of an array could have either order, a `layout` chooses one. Pictures with transparent
pixels need a `background`. `unread` lists the files that are not read.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from numpy.typing import NDArray

from lbq_hw.datasets.base import DatasetError
from lbq_hw.decode import printable

if TYPE_CHECKING:
    from PIL import Image

Shape = tuple[int, int, int]
Layout = Literal["nchw", "nhwc"]
Background = Literal["black", "white"]
LAYOUTS: tuple[Layout, ...] = ("nchw", "nhwc")
BACKGROUNDS: tuple[Background, ...] = ("black", "white")
_FEW = range(1, 5)  # channels that images have; their sides are longer
_COLOURS = (1, 3)
_NAMED = 3  # files that a note names at most
_SYSTEM = (
    "__MACOSX",
    "@eaDir",
    "$RECYCLE.BIN",
    "System Volume Information",
    "lost+found",
    "Thumbs.db",
    "desktop.ini",
)


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The user's options for reading their data; None if not given.

    `layout` is the order of the axes of images in an .npz file, `background` the colour that
    replaces the transparent pixels of pictures.
    """

    layout: Layout | None = None
    background: Background | None = None

    def __post_init__(self) -> None:
        for name, known in (("layout", LAYOUTS), ("background", BACKGROUNDS)):
            value = getattr(self, name)
            if value is not None and value not in known:
                raise ValueError(f"{name} must be {' or '.join(map(repr, known))}, not {value!r}")


def channels_first(
    images: NDArray[Any], *, layout: Layout | None, wanted: Shape | None, place: str
) -> NDArray[Any]:
    """Images with their last three axes in the order (C, H, W).

    Without a `layout`, the sizes must tell: the first axis has 1 to 4 entries and the last more, or
    the last axis has 1 or 3 entries and the first more than 4; or only one of the two orders gives
    the shape `wanted`. `place` names the array in an error.
    """
    first, middle, last = images.shape[-3:]
    readings: dict[Layout, Shape] = {"nchw": (first, middle, last), "nhwc": (last, first, middle)}
    if layout is None:
        fits = [name for name, shape in readings.items() if shape == wanted]
        if fits == ["nchw"] or (not fits and first in _FEW and last not in _FEW):
            layout = "nchw"
        elif fits == ["nhwc"] or (not fits and last in _COLOURS and first not in _FEW):
            layout = "nhwc"
    if layout is None:
        ways = " or ".join(
            f"{c} {'channel' if c == 1 else 'channels'} of {h}x{w} ({name})"
            for name, (c, h, w) in readings.items()
        )
        raise DatasetError(
            f"{place} of shape {images.shape} can be {ways}: choose one with --layout (in a "
            "configuration data.layout, in the file an entry layout)"
        )
    if layout == "nchw":
        return images
    axes = range(images.ndim)
    return images.transpose(*axes[:-3], axes[-1], axes[-3], axes[-2])


def opaque(picture: Image.Image, background: Background | None, path: Path) -> Image.Image:
    """The picture, composited on the background if it has transparent pixels."""
    if not picture.has_transparency_data:
        return picture
    from PIL import Image

    whole = picture.convert("RGBA")
    least, _ = whole.getchannel("A").getextrema()
    if least == 255:  # every pixel is opaque
        return whole
    if background is None:
        raise DatasetError(
            f"{path} has transparent pixels: say what lies behind them with --background black or "
            "--background white (in a configuration data.background)"
        )
    return Image.alpha_composite(Image.new("RGBA", whole.size, background), whole)


def is_hidden(name: str) -> bool:
    """Whether a file or folder of this name belongs to the system and not to the user."""
    return name[0] == "." or name in _SYSTEM


def unread(root: Path, places: Collection[Path], suffixes: Sequence[str]) -> str | None:
    """A note that names the files below `root` that are not read: all but those with one of the
    suffixes in one of the `places`. None if there are none.
    """
    found = [
        str(path.relative_to(root))
        for path in sorted(root.rglob("*"))
        if not (path.parent in places and path.suffix.lower() in suffixes)
        and not any(map(is_hidden, path.relative_to(root).parts))
        and path.is_file()
    ]
    if not found:
        return None
    count = f"{len(found)} file is" if len(found) == 1 else f"{len(found)} files are"
    more = ", ..." if len(found) > _NAMED else ""
    return (
        f"{count} not read, since a class has the PNG and JPEG files that lie in its folder "
        f"itself: {printable(', '.join(found[:_NAMED]))}{more}"
    )
