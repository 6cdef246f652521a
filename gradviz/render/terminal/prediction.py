"""The predicted order as a table, and in sentences where and why it was left."""

from collections.abc import Iterator
from typing import Final

from rich.console import Console

from gradviz.analysis.nodes.predicted_order import (
    Divergence,
    PredictedOrder,
    PredictedRow,
)
from gradviz.render.terminal.cells import (
    index_text,
    make_console,
    name_text,
    node_text,
    print_wrapped,
)
from gradviz.render.terminal.row_printer import print_rows
from gradviz.render.words.text import clean, count, duration, shorten

_MAX_ERROR: Final = 200


def print_prediction(order: PredictedOrder, console: Console | None = None) -> None:
    """Print the predicted order, where each node ran, and the first differences."""
    console = console or make_console()
    rows = order.rows
    of = f" of {order.num_predicted:,}" if len(rows) < order.num_predicted else ""
    num_nodes = count(len(rows), "node")
    on = "" if order.worker is None else f" on worker {order.worker}"
    head = f"Backward pass {order.task}{on}: {num_nodes}{of} in the predicted order"
    print_wrapped(console, head, "bold", "")
    left = {one.predicted for one in order.divergences}
    print_rows(
        console,
        ("turn", "#", "node", "name", "device", "because"),
        map(_cells, rows),
        alarming={row.index for row in rows if row.node in left},
        widest={"turn": len(str(len(rows))), "#": len(str(order.num_ran))},
    )
    for sentence in prediction_sentences(order):
        print_wrapped(console, sentence, "", "")


def prediction_sentences(order: PredictedOrder) -> Iterator[str]:
    """Yield whether the pass ran as predicted, or each queue's first difference."""
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
        index_text(row.ran),
        str(row.node),
        name_text(row.name),
        clean(row.device),
        because,
    ]


def _where(one: Divergence) -> str:
    queue = f"The queue of {name_text(one.queue_name)}"
    predicted = _named(one.predicted_name, one.predicted, one.predicted_ran)
    actual = _named(one.actual_name, one.actual, one.actual_ran)
    if one.predicted < 0:
        return f"{queue} ran {actual} behind its {one.index:,} predicted nodes:"
    if one.actual < 0:
        return f"{queue} ended after {count(one.index, 'node')}, before {predicted}:"
    after = f"after {count(one.index, 'node')}" if one.index else "at once"
    return f"{queue} left the order {after}: {predicted} was next, {actual} ran."


def _why(one: Divergence) -> str:  # noqa: C901 - a case for each reason
    predicted = name_text(one.predicted_name)
    by = f"{_named(one.by_name, one.by, one.by_ran)} on thread {one.thread}"
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
            return f"{predicted} did not run, though the pass completed"
        case "not foreseen":
            return "it is not in the graph of the pass, as far as the trace has it"
        case "unknown":
            return "The trace lacks the events that would say why"


def _named(name: str, node: int, index: int | None) -> str:
    return node_text(name, node, index) if node >= 0 else "the caller"
