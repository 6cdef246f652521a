import struct
import zlib

import pytest

from gradviz.errors import MissingToolError, UserError
from gradviz.render import conversion, style
from gradviz.render.conversion import converted
from gradviz.render.markup import document, element


@pytest.fixture
def picture() -> bytes:
    """Forty pixels by twenty, its left half in the color of failures."""
    half = element("rect", x=0, y=0, width=20, height=20, fill=style.ALARM)
    return document("half", 40, 20, [half])


def pixels(png: bytes) -> list[list[tuple[int, int, int]]]:
    """The rows of a PNG of 8 bits a channel, red, green and blue."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    data, at, header = b"", 8, ()
    while at < len(png):
        (size,) = struct.unpack(">I", png[at : at + 4])
        kind, body = png[at + 4 : at + 8], png[at + 8 : at + 8 + size]
        if kind == b"IHDR":
            header = struct.unpack(">IIBB", body[:10])
        data += body if kind == b"IDAT" else b""
        at += size + 12
    wide, high, _, color = header
    channels = {2: 3, 6: 4}[color]
    raw, stride = zlib.decompress(data), wide * channels
    rows, before = [], bytes(stride)
    for y in range(high):
        filtering, *line = raw[y * (stride + 1) : (y + 1) * (stride + 1)]
        for x in range(stride):
            left = line[x - channels] if x >= channels else 0
            corner = before[x - channels] if x >= channels else 0
            up = before[x]
            guess = (0, left, up, (left + up) // 2, nearest(left, up, corner))[
                filtering
            ]
            line[x] = (line[x] + guess) & 255
        rows.append([tuple(line[x : x + 3]) for x in range(0, stride, channels)])
        before = bytes(line)
    return rows


def nearest(left: int, up: int, corner: int) -> int:
    guess = left + up - corner
    return min((left, up, corner), key=lambda one: abs(guess - one))


def test_an_svg_stays_as_it_is(picture) -> None:
    assert converted(picture, "svg") is picture


def test_a_png_has_two_pixels_for_each_and_the_same_colors(picture) -> None:
    pytest.importorskip("typst")

    rows = pixels(converted(picture, "png"))

    red = tuple(bytes.fromhex(style.ALARM[1:]))
    assert (len(rows), len(rows[0])) == (40, 80)
    assert (rows[20][10], rows[20][70]) == (red, (255, 255, 255))


def test_a_pdf_is_one_page_of_its_size_and_the_same_each_time(picture) -> None:
    pytest.importorskip("typst")

    pdf = converted(picture, "pdf")

    assert pdf.startswith(b"%PDF")
    assert b"/MediaBox[0 0 30 15]" in pdf  # of 40 x 20 pixels, 96 an inch
    assert pdf == converted(picture, "pdf")


def test_a_picture_too_large_for_a_png_is_refused_and_still_fits_a_pdf_page() -> None:
    pytest.importorskip("typst")
    huge = document("huge", 60_000, 1_200, [])

    with pytest.raises(UserError, match="60,000 x 1,200 pixels is too large"):
        converted(huge, "png")
    assert b"/MediaBox[0 0 14400 288]" in converted(huge, "pdf")


def test_many_pixels_are_drawn_one_for_one(monkeypatch, picture) -> None:
    pytest.importorskip("typst")
    monkeypatch.setattr(conversion, "MAX_PIXELS", 1_000)

    assert len(pixels(converted(picture, "png"))) == 20


@pytest.mark.parametrize("format_", ["png", "pdf"])
def test_without_typst_it_says_how_to_get_it(format_, picture, monkeypatch) -> None:
    monkeypatch.setattr(conversion, "is_available", lambda: False)

    with pytest.raises(MissingToolError, match=r"pip install 'gradviz\[pictures\]'"):
        converted(picture, format_)


def test_a_picture_without_a_size_is_refused(picture) -> None:
    pytest.importorskip("typst")

    with pytest.raises(UserError, match="without a size"):
        converted(b"<svg></svg>", "png")
