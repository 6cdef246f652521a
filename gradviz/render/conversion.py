"""SVG files as PNG and PDF: what all our pictures of bars and curves go through.

By Typst, the extra ``pictures``: one wheel with no library of the system behind it,
which draws SVG with resvg (CSS, patterns, markers), brings fonts for where there are
none, and keeps the text of a PDF text.
"""

import importlib
import importlib.util
import re
import struct
from typing import Final, Literal, TypeAlias

from gradviz.errors import MissingToolError, UserError

PictureFormat: TypeAlias = Literal["svg", "png", "pdf"]

PICTURE_FORMATS: Final[tuple[PictureFormat, ...]] = ("svg", "png", "pdf")

#: Larger ones take gigabytes of memory, and few viewers open them.
MAX_PIXELS: Final = 50_000_000
#: Pixels for each of the SVG's, where there is room for so many: sharp in print.
SCALE: Final = 2
#: The longest side of a page that PDF readers show.
MAX_PAGE_POINTS: Final = 14_400.0

#: CSS has 96 pixels an inch, paper 72 points.
_POINTS_PER_PIXEL: Final = 0.75

_SIZE: Final = re.compile(rb'<svg\b[^>]* width="([0-9.]+)" height="([0-9.]+)"')


def is_available() -> bool:
    """Whether there is what makes PNG and PDF files."""
    return importlib.util.find_spec("typst") is not None


def check_convertible(format: PictureFormat) -> None:  # noqa: A002 - what it is called everywhere
    """Refuse a format that cannot be made here, before any work is done for it.

    Raises:
        MissingToolError: It needs Typst, and that is not installed.
    """
    if format != "svg" and not is_available():
        raise MissingToolError(
            f"a {format} file of this picture needs typst: "
            f"pip install 'gradviz[pictures]', or write an svg, which needs nothing"
        )


def converted(svg: bytes, format: PictureFormat) -> bytes:  # noqa: A002 - as above
    """A picture in another format; the same bytes if that is ``svg``.

    A PNG has two pixels for each of the SVG's where they are not too many, else one. A
    PDF is one page, as large as the picture.

    Args:
        svg: What `gradviz.render.markup.document` wrote.
        format: Of the result.

    Raises:
        MissingToolError: It needs Typst, and that is not installed.
        UserError: It would have too many pixels, or Typst failed.
    """
    if format == "svg":
        return svg
    check_convertible(format)
    found = _SIZE.search(svg[:1_000])
    if found is None:
        raise UserError("an svg without a size in pixels cannot be converted")
    wide, high = float(found[1]), float(found[2])
    points = _POINTS_PER_PIXEL
    if format == "pdf":
        points = min(points, MAX_PAGE_POINTS / max(wide, high))
    typst = importlib.import_module("typst")
    page = (
        f"#set page(width: {wide * points}pt, height: {high * points}pt, margin: 0pt)\n"
        '#image("picture.svg", width: 100%)'
    )
    try:
        made: bytes = typst.compile(
            {"main.typ": page.encode(), "picture.svg": svg},
            format=format,
            ppi=_scale(wide, high) * 72 / points if format == "png" else None,
            timestamp=0,  # the same picture is the same file
        )
    except RuntimeError as error:
        raise UserError(f"typst cannot make a {format} of it: {error}") from error
    return made


def png_size(png: bytes) -> tuple[int, int]:
    """How many pixels wide and high a PNG is."""
    wide, high = struct.unpack(">II", png[16:24])
    return wide, high


def _scale(wide: float, high: float) -> int:
    """How many pixels of a PNG stand for one of the SVG.

    Raises:
        UserError: Even one would be too many.
    """
    if wide * high * SCALE**2 <= MAX_PIXELS:
        return SCALE
    if wide * high <= MAX_PIXELS:
        return 1
    raise UserError(
        f"a png of {wide:,.0f} x {high:,.0f} pixels is too large, the most are "
        f"{MAX_PIXELS:,}: show less of it, or write an svg or a pdf"
    )
