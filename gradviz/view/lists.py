"""Pages of the server's own: lists, with the look of our pictures."""

import html
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from gradviz.render import style
from gradviz.render.markup import element


class Link(NamedTuple):
    """Words that lead to an address of ours."""

    words: str
    address: str


ListCell: TypeAlias = str | Link

STYLE: Final = f"""\
:root {{ color-scheme: light dark }}
body {{ margin: 24px; font: 14px/1.5 {style.FONT} }}
h1 {{ font-size: 18px; margin: 0 0 8px }}
table {{ border-collapse: collapse }}
th, td {{ text-align: left; padding: 3px 18px 3px 0; border-bottom: 1px solid #8885 }}
td {{ font-variant-numeric: tabular-nums }}
a {{ color: light-dark(#33618d, #7fb2e0) }}
"""

_PAGE: Final = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
{parts}
</body>
</html>
"""


def list_page(
    title: str,
    links: Iterable[Link],
    heads: Sequence[str],
    rows: Iterable[Sequence[ListCell]],
    note: str = "",
    end: str = "",
) -> bytes:
    """A page with a table.

    Args:
        title: Title of the page.
        links: Links to other pages.
        heads: Of the columns.
        rows: Of the table.
        note: Further remark.
        end: Markup to put at its end.
    """
    parts = [
        "<main>",
        element("h1", title),
        *([f"<p>{' · '.join(map(written, links))}</p>"] if links else ()),
        *([element("p", note)] if note else ()),
        *_table(heads, rows),
        "</main>",
        end,
    ]
    page = _PAGE.format(title=html.escape(title), style=STYLE, parts="\n".join(parts))
    return page.encode("utf-8", "replace")


def written(cell: ListCell) -> str:
    """The markup of a cell."""
    if isinstance(cell, Link):
        return element("a", cell.words or "?", href=cell.address)
    return html.escape(cell)


def _table(heads: Sequence[str], rows: Iterable[Sequence[ListCell]]) -> Iterable[str]:
    if not heads:
        return
    yield "<table><thead><tr>"
    yield "".join(element("th", one, scope="col") for one in heads)
    yield "</tr></thead><tbody>"
    for row in rows:
        yield "<tr>" + "".join(f"<td>{written(one)}</td>" for one in row) + "</tr>"
    yield "</tbody></table>"
