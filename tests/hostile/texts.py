"""Texts that must never act, wherever a trace's text is shown: the one table."""

import re
from typing import Final

from gradviz.render.words.text import clean, width

#: Whoever runs any of it in a page sets `window.hacked`.
_ACT: Final = "window.hacked=1"

HOSTILE: Final = (
    f"</title><script>{_ACT}</script>",
    f"</script><script>{_ACT}</script>",
    f'"><img src=x onerror={_ACT}>',
    f"'><svg/onload={_ACT}>",
    "<IMG SRC='/etc/passwd'/>",
    "<!--<script>",
    "]]><![CDATA[",
    "</style><style>*{display:none}</style>",
    f"javascript:{_ACT}",
    'x" image="/etc/passwd',
    'n0"]; n9 [label="injected',
    "ends with a backslash\\",
    "<b>all of it is HTML</b>",
    '\\" URL="http://evil',
    "\\N \\G \\L &amp; &lt; &#x3c;script&#x3e;",
    "\x1b[31mred\x1b[0m",
    "\x1b]8;;http://evil\x07link\x1b]8;;\x07",
    "\x1b]52;c;ZXZpbA==\x07\x1b[2J\x9b31m",
    "\u202egnp.exe\u2066",
    "NUL\x00 and \ud800 and \ufffe",
    "two\nlines\rand\u2028more\u2029\x85",
    "[bold red]markup[/bold red]",
    "%s {0} {{7*7}} ${7*7} $HOME `id`",
    "__proto__",
    "constructor",
    "../../../etc/passwd",
    "=1+1",
    "-rf",
    "<" * 3_000,
    "",
)


def benign(text: str) -> str:
    """Return a harmless text as long and as wide where it is shown."""
    lines = (clean(line) for line in text.split("\n"))
    return "\n".join(re.sub(r"[^\w ./:\\]", _harmless, line) for line in lines)


def _harmless(found: re.Match[str]) -> str:
    """A letter as wide as a character: pictures leave out what has no room."""
    return next(one for one in "ijxm" if width(one, 10) >= width(found[0], 10))
