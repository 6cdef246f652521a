"""SVG elements as text, and the file around them, for all pictures."""

import html
from collections.abc import Iterable
from functools import partial
from typing import Final

from gradviz.render import style

#: Text that is no markup. (`xml.sax.saxutils` has it too, and imports a web client.)
escape = partial(html.escape, quote=False)

_STYLE: Final = f"""\
text {{ font-family: {style.FONT}; font-size: {style.TEXT_SIZE:g}px }}
text {{ fill: {style.INK} }}
.title {{ font-size: {style.TITLE_SIZE:g}px; font-weight: 600 }}
.small {{ font-size: {style.SMALL_SIZE:g}px }}
.faint {{ fill: {style.FAINT_INK} }}
.bold {{ font-weight: 600 }}
.middle {{ text-anchor: middle }}
.end {{ text-anchor: end }}
"""


def document(
    title: str,
    width: float,
    height: float,
    parts: Iterable[str],
    more_style: str = "",
    *,
    scale: float = 1.0,
) -> bytes:
    """An SVG file: its size, its fonts, a light background, and `parts`.

    Args:
        title: Title that screen readers read.
        width: In pixels.
        height: In pixels.
        parts: Elements, one a line.
        more_style: CSS rules besides those that all pictures share.
        scale: Scale at which it is shown: 0.5 for half of `width` and `height`.
    """
    size = (f"{width:.0f}", f"{height:.0f}")
    shown = (f"{width * scale:.0f}", f"{height * scale:.0f}")
    lines = (
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<svg xmlns="http://www.w3.org/2000/svg" role="img" '
        'width="{}" height="{}" viewBox="0 0 {} {}">'.format(*shown, *size),
        element("title", content=title),
        f"<style>\n{_STYLE}{more_style}</style>",
        element("rect", width="100%", height="100%", fill=style.BACKGROUND),
        *parts,
        "</svg>\n",
    )
    # Piece by piece: one character of another alphabet would make all of it wider.
    return b"\n".join(line.encode() for line in lines)


def element(tag: str, content: str = "", **attributes: str | float) -> str:
    """One element; underscores in the names of attributes stand for hyphens.

    Args:
        tag: Its name.
        content: Text, escaped here.
        **attributes: Numbers are written with one decimal at most; ``class_`` is the
            class.
    """
    opening = [tag]
    for name, value in attributes.items():
        written = number(value) if isinstance(value, float | int) else value
        kebab = name.rstrip("_").replace("_", "-")
        opening.append(f'{kebab}="{html.escape(written)}"')
    if not content:
        return f"<{' '.join(opening)}/>"
    return f"<{' '.join(opening)}>{escape(content)}</{tag}>"


def group(
    parts: Iterable[str], *, tooltip: str = "", x: float = 0, y: float = 0
) -> str:
    """Elements moved to a place, with a text that appears when one points at them."""
    hint = element("title", content=tooltip) if tooltip else ""
    return (
        f'<g transform="translate({number(x)} {number(y)})">{hint}{"".join(parts)}</g>'
    )


def number(value: float) -> str:
    """A length with one decimal at most."""
    return f"{value:.1f}".removesuffix(".0")
