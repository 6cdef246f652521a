"""SVG files as PNG and PDF, for all pictures of bars and curves.

By Typst, the extra ``pictures``: one wheel with no library of the system behind it,
which draws SVG with resvg (CSS, patterns, markers), brings fonts for where there are
none, and keeps the text of a PDF text.
"""

import importlib
import importlib.util
import re
import struct
from collections.abc import Sequence
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
    """Return whether the libraries for PNG and PDF files are there."""
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
        svg: Picture that `gradviz.render.markup.document` wrote.
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
    ppi = _scale(wide, high) * 72 / points if format == "png" else None
    (made,) = _compiled([svg], (wide * points, high * points), format, ppi)
    return made


def pngs(svgs: Sequence[bytes], wide: float, high: float, scale: float) -> list[bytes]:
    """Return pictures of one size as PNG, faster than one after the other.

    Args:
        svgs: Pictures that `gradviz.render.markup.document` wrote; at least one.
        wide: Width of each, in pixels of the SVG.
        high: Height of each, in pixels of the SVG.
        scale: Number of pixels of a PNG for one of the SVG.

    Raises:
        MissingToolError: Typst is not installed.
        UserError: Typst failed.
    """
    check_convertible("png")
    points = _POINTS_PER_PIXEL
    return _compiled(svgs, (wide * points, high * points), "png", scale * 72 / points)


def png_size(png: bytes) -> tuple[int, int]:
    """Return the width and height of a PNG, in pixels."""
    wide, high = struct.unpack(">II", png[16:24])
    return wide, high


def _scale(wide: float, high: float) -> int:
    """Return the number of pixels of a PNG for one of the SVG.

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


def _compiled(
    svgs: Sequence[bytes],
    size: tuple[float, float],
    format: PictureFormat,  # noqa: A002 - as above
    ppi: float | None,
) -> list[bytes]:
    """Have Typst make a page of each picture; return its files.

    Args:
        svgs: Pictures of one size.
        size: Width and height of a page, in points.
        format: Of the files: a PNG for each page, or a PDF of all pages.
        ppi: Pixels per inch of a PNG.

    Raises:
        UserError: Typst failed.
    """
    typst = importlib.import_module("typst")
    wide, high = size
    pages = "\n".join(f'#image("{at}.svg", width: 100%)' for at in range(len(svgs)))
    main = (
        f"#set page(width: {wide}pt, height: {high}pt, margin: 0pt)\n"
        f"#set block(spacing: 0pt)\n{pages}"
    )
    files = {f"{at}.svg": svg for at, svg in enumerate(svgs)}
    try:
        made = typst.compile(
            {"main.typ": main.encode(), **files},
            format=format,
            ppi=ppi,
            timestamp=0,  # the same picture is the same file
        )
    except RuntimeError as error:
        raise UserError(f"typst cannot make a {format} of it: {error}") from error
    return made if isinstance(made, list) else [made]
