"""The predicted order as a table, and in sentences where and why it was left."""

import textwrap
from collections.abc import Iterator
from typing import Final

from rich.console import Console
from rich.text import Text

from gradviz.analysis.prediction import Divergence, PredictedOrder, PredictedRow
from gradviz.render.terminal.rows import print_rows
from gradviz.render.terminal.tables import NOTHING, make_console, name_text
from gradviz.render.text import clean, count, duration, shorten

_MAX_ERROR: Final = 200


def print_prediction(order: PredictedOrder, console: Console | None = None) -> None:
    """Print the predicted order, where each node ran, and the first differences."""
    console = console or make_console()
    rows = order.rows
    of = f" of {order.num_predicted:,}" if len(rows) < order.num_predicted else ""
    num_nodes = count(len(rows), "node")
    head = f"Backward pass {order.task}: {num_nodes}{of} in the predicted order"
    console.print(Text(head, style="bold"))
    left = {one.predicted for one in order.divergences}
    print_rows(
        console,
        ("#", "node", "name", "device", "ran", "because"),
        map(_cells, rows),
        alarming={row.index for row in rows if row.node in left},
        widest={"#": len(str(len(rows)))},
    )
    for sentence in prediction_sentences(order):
        lines = textwrap.wrap(sentence, console.width, subsequent_indent="  ")
        console.print(Text("\n".join(lines)), soft_wrap=True)


def prediction_sentences(order: PredictedOrder) -> Iterator[str]:
    """Whether it ran as predicted; if not, of each queue where it first did not."""
    if order.num_lost:
        yield (
            f"The definitions of {count(order.num_lost, 'node')} are lost: what they "
            f"lead to is not predicted."
        )
    if not order.num_predicted:
        yield "The trace does not have the node with which the pass began."
    elif not order.divergences:
        yield f"It ran as predicted, in {count(order.num_queues, 'queue')}."
    for one in order.divergences:
        yield f"{_where(one)} {_why(one)}."


def _cells(row: PredictedRow) -> list[str]:
    match row.reason:
        case "alone":
            because = "nothing else was ready"
        case "leaf":
            because = f"a leaf, of {row.num_ready:,} ready"
        case "made last":
            because = f"made last of {row.num_ready:,} ready"
    return [
        str(row.index),
        str(row.node),
        name_text(row.name),
        clean(row.device),
        NOTHING if row.ran is None else str(row.ran),
        because,
    ]


def _where(one: Divergence) -> str:
    queue = f"The queue of {name_text(one.queue_name)}"
    predicted = _named(one.predicted_name, one.predicted)
    actual = _named(one.actual_name, one.actual)
    if one.predicted < 0:
        return f"{queue} ran {actual} behind its {one.index:,} predicted nodes:"
    if one.actual < 0:
        return f"{queue} ended after {count(one.index, 'node')}, before {predicted}:"
    after = f"after {count(one.index, 'node')}" if one.index else "at once"
    return f"{queue} left the order {after}: {predicted} was next, {actual} ran."


def _why(one: Divergence) -> str:  # noqa: C901 - a case for each reason
    predicted = name_text(one.predicted_name)
    by = f"{_named(one.by_name, one.by)} on thread {one.thread}"
    off = duration(one.off_ns or 0)
    match one.why:
        case "late":
            return f"The former became ready {off} after the latter had left, by {by}"
        case "early":
            return f"The latter was ready before its turn, by {by}"
        case "crossed":
            return (
                f"The former was pushed by thread {one.thread} only {off} before the "
                f"latter was popped, perhaps too late to be seen"
            )
        case "shared":
            return (
                "They are equal: tasks of another pass in the queue have changed which "
                "of them is on top of the heap"
            )
        case "tied":
            return (
                "They are equal: what other threads pushed has changed which of them "
                "is on top of the heap"
            )
        case "policy":
            return "Both were ready: another order than PyTorch's is in force"
        case "failed":
            return f"the pass failed ({shorten(clean(one.error), _MAX_ERROR)})"
        case "unfinished":
            return "the trace ends inside the pass"
        case "not run":
            return f"{predicted} did not run, though the pass ended well"
        case "not foreseen":
            return "it is not in the graph of the pass, as far as the trace has it"
        case "unknown":
            return "The trace lacks the events that would say why"


def _named(name: str, node: int) -> str:
    return f"{name_text(name)} ({node})" if node >= 0 else "the caller"
