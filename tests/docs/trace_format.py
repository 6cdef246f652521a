"""Text generated from the classes of events, where nothing can derive it.

That is the tables of the two pages on events, the JSON schema beside them, and the
union of all kinds that a type checker reads. To write them anew: ``python -m
tests.docs.trace_format``.

On a page, ``<!-- events 10 to 19 -->`` stands before the table of the kinds with the
codes 10 to 19, ``<!-- end -->`` after it.
"""

import enum
import functools
import inspect
import json
import operator
import re
from pathlib import Path
from typing import Any

import msgspec

from gradviz.trace import events
from gradviz.trace.events import KINDS, EventColumn, kind_name, label, own_columns
from gradviz.trace.format.definitions import VERSION as TRACE_VERSION
from tests.docs.pages import DOCS

PAGE = DOCS / "trace-events.md"
PAGES = (PAGE, DOCS / "trace-program-events.md")
SCHEMA = DOCS / "trace-events.schema.json"
SOURCE = Path(events.__file__)

#: The line before a table of events.
FAMILY = re.compile(r"^<!-- events (\d+) to (\d+) -->$", re.MULTILINE)


def union() -> str:
    """The members of `AnyEvent`, a line each."""
    return "".join(f"    {kind.__name__},\n" for kind in KINDS.values())


def families() -> list[range]:
    """The codes of each table of events, in the order of the pages."""
    return [
        range(int(first), int(last) + 1)
        for page in PAGES
        for first, last in FAMILY.findall(page.read_text(encoding="utf-8"))
    ]


def events_table(codes: range) -> str:
    """Every kind with one of these codes, its columns and its meaning, in one line."""
    rows = [
        f"| {code} | `{kind_name(kind)}` | {', '.join(map(_field, own_columns(kind)))} "
        f"| {' '.join((inspect.getdoc(kind) or '').split())} |\n"
        for code, kind in KINDS.items()
        if code in codes
    ]
    return "".join(["| code | kind | own fields | meaning |\n|--|--|--|--|\n", *rows])


def enums_table() -> str:
    """Every enum of a column with its values, in the order in which kinds need them."""
    types = [column.type for kind in KINDS.values() for column in own_columns(kind)]
    rows = []
    for members in dict.fromkeys(one for one in types if issubclass(one, enum.IntEnum)):
        values = ", ".join(f"{one.value} {label(one)}" for one in members)
        rows.append(f"| {members.__name__} | {values} |\n")
    return "".join(["| enum | values |\n|--|--|\n", *rows])


def _field(column: EventColumn) -> str:
    if column.type is int:
        return f"`{column.name}`"
    name = "text" if column.type is str else column.type.__name__
    return f"`{column.name}`: {name}"


def event_schema() -> dict[str, Any]:
    """The JSON schema of each line but the first."""
    (schema,), components = msgspec.json.schema_components(
        [functools.reduce(operator.or_, KINDS.values())], ref_template="#/$defs/{name}"
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"an event of a trace, format {TRACE_VERSION[0]}.{TRACE_VERSION[1]}",
        **schema,
        "$defs": components,
    }


def written_page(page: Path) -> str:
    """A page with its tables of events and enums as they are to be."""
    text = page.read_text(encoding="utf-8")
    tables = {
        f"events {first} to {last}": events_table(range(int(first), int(last) + 1))
        for first, last in FAMILY.findall(text)
    }
    if page == PAGE:
        tables["enums"] = enums_table()
    for name, table in tables.items():
        text = _between(f"<!-- {name} -->\n", "<!-- end -->", text, table)
    return text


def written_source() -> str:
    """The vocabulary's module with the union as it is to be."""
    text = SOURCE.read_text(encoding="utf-8")
    return _between(r"\nAnyEvent = Union\[[^\n]*\n", "]\n", text, union())


def _between(begin: str, end: str, text: str, new: str) -> str:
    pattern = re.compile(f"({begin}).*?(?=^{re.escape(end)})", re.DOTALL | re.MULTILINE)
    assert len(pattern.findall(text)) == 1, f"nothing is between {begin!r} and {end!r}"
    return pattern.sub(lambda found: found[1] + new, text)


if __name__ == "__main__":
    for written in PAGES:
        written.write_text(written_page(written), encoding="utf-8")
    SOURCE.write_text(written_source(), encoding="utf-8")
    SCHEMA.write_text(f"{json.dumps(event_schema(), indent=1)}\n", encoding="utf-8")
