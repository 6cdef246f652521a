"""Text generated from the classes of events, where nothing can derive it.

That is the tables of docs/trace-format.md, the JSON schema beside it, and the union of
all kinds that a type checker reads. To write them anew: ``python -m
tests.docs.trace_format``.
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

PAGE = DOCS / "trace-format.md"
SCHEMA = DOCS / "trace-events.schema.json"
SOURCE = Path(events.__file__)


def union() -> str:
    """The members of `AnyEvent`, a line each."""
    return "".join(f"    {kind.__name__},\n" for kind in KINDS.values())


def events_table() -> str:
    """Every kind with its code, its columns and what it means."""
    rows = [
        f"| {code} | `{kind_name(kind)}` | {', '.join(map(_field, own_columns(kind)))} "
        f"| {inspect.getdoc(kind)} |\n"
        for code, kind in KINDS.items()
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


def written_page() -> str:
    """The page with its tables of events and enums as they are to be."""
    text = PAGE.read_text(encoding="utf-8")
    for name, table in (("events", events_table()), ("enums", enums_table())):
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
    PAGE.write_text(written_page(), encoding="utf-8")
    SOURCE.write_text(written_source(), encoding="utf-8")
    SCHEMA.write_text(f"{json.dumps(event_schema(), indent=1)}\n", encoding="utf-8")
