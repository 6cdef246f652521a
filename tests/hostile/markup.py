"""Structure of a page or a picture, without its texts."""

import io
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from typing import Final, NamedTuple

#: What runs, loads or leads elsewhere; a picture has no use for them.
_ACTIVE: Final = frozenset(
    ("script", "image", "img", "iframe", "object", "embed", "foreignobject")
)


class Element(NamedTuple):
    """A tag and the names of its attributes."""

    tag: str
    attributes: tuple[str, ...]


def structure(markup: bytes) -> list[Element]:
    """The elements of a picture (SVG) or a page (HTML), in their order."""
    if markup.lstrip()[:9].lower() != b"<!doctype":
        parsed = ET.parse(io.BytesIO(markup)).getroot().iter()
        return [
            Element(one.tag.rpartition("}")[2], tuple(sorted(one.attrib)))
            for one in parsed
        ]
    found: list[Element] = []

    class Parser(HTMLParser):
        def handle_starttag(self, tag, attrs):
            found.append(Element(tag, tuple(sorted(name for name, _ in attrs))))

        def handle_comment(self, data):
            found.append(Element("<!--", ()))

    Parser().feed(markup.decode())
    return found


def active_parts(markup: bytes) -> list[Element]:
    """Elements that run, load, or lead elsewhere."""
    return [
        one
        for one in structure(markup)
        if one.tag.lower() in _ACTIVE
        or any(
            name.startswith("on") or name.endswith("href") for name in one.attributes
        )
    ]
