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
<main id="page"></main>
<script id="data" type="application/gzip">{data}</script>
<script>{program}</script>
</body>
</html>
"""


def write_page(data: bytes, title: str, *, connects: str = "'none'") -> bytes:
    """A whole page.

    Args:
        data: What `gradviz.render.page.columns.pack` made; empty for a page that gets
            its data elsewhere.
        title: Of the window.
        connects: Where the program may ask for more: nowhere, unless a server that
            serves the page says ``'self'``.
    """
    program, style = _static("page.js"), _static("page.css")
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src {_hash(program)}",
            f"style-src {_hash(style)}",
            f"connect-src {connects}",
            "img-src data: blob:",
            "worker-src blob:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    return _TEMPLATE.format(
        policy=policy,
        title=html.escape(title),
        style=style,
        data=base64.b64encode(data).decode(),
        program=program,
    ).encode("utf-8", "replace")


def _static(name: str) -> str:
    return (resources.files(__package__) / "static" / name).read_text("utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
