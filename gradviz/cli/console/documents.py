"""Documents: the answer of a command on stdout, as JSON or as a person reads it."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:  # 'doctor' must come as far as this where NumPy is broken
    from gradviz.trace.format.model import Trace

#: Of a list as long as a trace wants it so many elements become text at once.
MAX_IN_PIECE: Final = 1_000

Answer = TypeVar("Answer")


def print_json(document: Mapping[str, object]) -> None:
    """Write one JSON object to stdout, on a line of its own."""
    for piece in json_pieces(document):
        sys.stdout.write(piece)
    sys.stdout.write("\n")
    sys.stdout.flush()


def json_pieces(document: Mapping[str, object]) -> Iterator[str]:
    """The text of a JSON object in pieces, so that it is never in memory as a whole.

    A piece holds at most `MAX_IN_PIECE` elements of one of its lists.
    """
    yield "{"
    for place, (name, value) in enumerate(document.items()):
        yield f"{', ' if place else ''}{json.dumps(name)}: "
        if not isinstance(value, list) or not value:
            yield json.dumps(value)
            continue
        for first in range(0, len(value), MAX_IN_PIECE):
            elements = json.dumps(value[first : first + MAX_IN_PIECE])[1:-1]
            yield f"{', ' if first else '['}{elements}"
        yield "]"
    yield "}"


def print_document(document: Mapping[str, object], *traces: "Trace") -> None:
    """Write an answer as one JSON object, which says whether traces lack something.

    Args:
        document: The answer. What it says itself of ``is_complete`` stands.
        traces: Traces that it was read from.
    """
    is_complete = all(trace.losses.is_complete for trace in traces)
    print_json({**document, "is_complete": document.get("is_complete", is_complete)})


def show(
    answer: Answer,
    *traces: "Trace",
    as_json: bool,
    document: Callable[[Answer], Mapping[str, object]],
    table: Callable[[Answer], None],
) -> None:
    """Write what an analysis found to stdout: as JSON, or as a person reads it."""
    if as_json:
        print_document(document(answer), *traces)
    else:
        table(answer)
