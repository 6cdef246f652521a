"""The file of a page: program, style and data in one, and nothing from elsewhere.

The browser is told by hash which script and which style belong to the page, and that
it may load nothing (`Content-Security-Policy`): whatever text of a trace got into the
markup could neither run nor reach anybody. None does but the title, which is escaped:
names are in the data, and the program shows them as text.
"""

import base64
import hashlib
import html
from importlib import resources
from typing import Final, NamedTuple

_TEMPLATE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<noscript>This page draws with JavaScript, all of which is in this file.</noscript>
{above}<main id="page" aria-busy="true"></main>
<script id="data" type="application/gzip">{data}</script>
<script>{program}</script>
{more}</body>
</html>
"""


class PageBar(NamedTuple):
    """A server's bar above a page.

    Attributes:
        markup: Its elements; texts in it are escaped.
        style: Their style.
        program: Their program; it may call the server of the page.
    """

    markup: str = ""
    style: str = ""
    program: str = ""


NO_BAR: Final = PageBar()


def write_page(data: bytes, title: str, bar: PageBar = NO_BAR) -> bytes:
    """A whole page.

    Args:
        data: Data that `gradviz.render.page.columns.pack` made.
        title: Of the window.
        bar: Bar to put above it.
    """
    return _TEMPLATE.format(
        policy=page_policy(bar),
        title=html.escape(title),
        style=_static("page.css") + bar.style,
        above=f"{bar.markup}\n" * bool(bar.markup),
        data=base64.b64encode(data).decode(),
        program=_static("page.js"),
        more=f"<script>{bar.program}</script>\n" * bool(bar.program),
    ).encode("utf-8", "replace")


def page_policy(bar: PageBar = NO_BAR) -> str:
    """Return a page's policy: run and style only inline code, and load nothing."""
    programs = [hash_of(_static("page.js"))]
    programs += [hash_of(bar.program)] * bool(bar.program)
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {' '.join(programs)}",
            f"style-src {hash_of(_static('page.css') + bar.style)}",
            "connect-src " + ("'self'" if bar.program else "'none'"),
            "img-src data: blob:",
            "worker-src blob:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def hash_of(text: str) -> str:
    """Return a policy's name for a program, or a style, of this text."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _static(name: str) -> str:
    return (resources.files(__package__) / "static" / name).read_text("utf-8")
