"""Arguments of slices: their titles, and the details in a viewer."""

from collections.abc import Mapping
from pathlib import PurePath

import numpy as np

from gradviz.analysis.tables.calls import Calls
from gradviz.analysis.tables.executions import MAX_NAMES, MAX_TEXT, STATUSES
from gradviz.analysis.tables.worker_parts import whole_of, wholes_of, worker_parts
from gradviz.export.table_rows import inputs_in_words
from gradviz.export.timeline.activity import Activity
from gradviz.export.timeline.facts import (
    Details,
    Fact,
    each,
    narrow_fact,
    of_strings,
    where_not_empty,
)
from gradviz.export.timeline.slices import (
    FORWARD,
    KERNEL,
    NODE,
    OPTIMIZER,
    PASS,
    PUSH,
    QUEUED,
    SLEEP,
)
from gradviz.trace.format.model import InputDefinition, ProcessDefinition, Trace
from gradviz.trace.format.strings import shortened
from gradviz.trace.format.table import Column


def details(trace: Trace, what: Activity) -> Mapping[str, Details]:
    """Return the titles and arguments of all slices, by kind."""
    forward, optimizer = what.forward, what.optimizer
    tasks = _queued_titles(trace, what)
    of_queued = {
        "task": narrow_fact(wholes_of(trace, what.queueing.task)),
        "node": narrow_fact(what.queueing.node),
    }
    return {
        PASS: _passes(trace, what),
        FORWARD: Details(
            of_strings(trace, forward.module, lambda path: path or "forward"),
            {"class": of_strings(trace, forward.name), "status": _ends(forward)},
        ),
        OPTIMIZER: Details(
            of_strings(trace, optimizer.name, "{}.step".format),
            {"status": _ends(optimizer)},
        ),
        NODE: _runs(trace, what),
        SLEEP: _sleeps(trace),
        PUSH: Details(
            tasks._replace(texts=[f"push {name}" for name in tasks.texts or ()]),
            of_queued,
        ),
        QUEUED: Details(tasks, of_queued),
        KERNEL: _kernels(what),
    }


def process_name(process: ProcessDefinition) -> str:
    """The program, and which of a distributed run it is."""
    program = PurePath(process.argv[0]).name if process.argv else "gradviz"
    rank = f" (rank {process.rank})" if process.rank >= 0 else ""
    return shortened(program, MAX_TEXT) + rank


def queue_name(trace: Trace, queue: int) -> str:
    """Return the name of a queue."""
    known = trace.queues.get(queue)
    return "?" if known is None else shortened(known.name, MAX_TEXT)


def thread_name(trace: Trace, thread: int) -> str:
    """Return the name of a thread."""
    known = trace.threads.get(thread)
    return f"thread {thread}" if known is None else shortened(known.name, MAX_TEXT)


def _passes(trace: Trace, what: Activity) -> Details:
    some = what.passes
    titles = [
        f"{'' if one.task == one.whole else 'part of '}backward pass {one.whole}"
        for one in some
    ]
    parents = [whole_of(trace, one.parent) for one in some]
    workers = [-1 if one.worker is None else one.worker for one in some]
    return Details(
        each(titles),
        {
            "task": narrow_fact(_column([one.whole for one in some])),
            "depth": narrow_fact(_column([one.depth for one in some])),
            "status": each([one.status for one in some]),
            "parent": narrow_fact(
                _column(parents),
                None,
                np.array([one.parent >= 0 for one in some], bool),
            ),
            "worker": narrow_fact(
                _column(workers),
                None,
                np.array([one.worker is not None for one in some], bool),
            ),
            "error": where_not_empty([one.error for one in some], np.arange(len(some))),
        },
    )


def _sleeps(trace: Trace) -> Details:
    queues, own = np.unique(
        trace.columns["queue_waited"].narrow("queue"), return_inverse=True
    )
    names = [queue_name(trace, queue) for queue in queues.tolist()]
    return Details(
        narrow_fact(np.zeros(len(own), np.int8), ["waiting"]),
        {"queue": narrow_fact(own, names)},
    )


def _kernels(what: Activity) -> Details:
    some = what.kernels
    launched_ns = _column([one.launched_ns for one in some])
    waited_ns = _column([one.start_ns for one in some]) - launched_ns
    return Details(
        each([one.name for one in some]),
        {
            "kernel": narrow_fact(_column([one.kernel for one in some])),
            "launched_by_thread": narrow_fact(_column([one.thread for one in some])),
            "waited_ns": narrow_fact(np.maximum(waited_ns, 0)),
            "location": where_not_empty(
                [one.location for one in some], np.arange(len(some))
            ),
        },
    )


def _queued_titles(trace: Trace, what: Activity) -> Fact:
    names, places = _cut(*trace.nodes.names(what.queueing.node))
    wake_up = len(names)
    return narrow_fact(
        np.where(what.queueing.node < 0, wake_up, places), [*names, "wake-up"]
    )


def _ends(calls: Calls) -> Fact:
    """The end of each call that did not simply return."""
    return narrow_fact(
        np.where(calls.has_ended, 1, 0),
        ["unfinished", "failed"],
        calls.failed | ~calls.has_ended,
    )


def _runs(trace: Trace, what: Activity) -> Details:
    runs, nodes = what.runs, trace.nodes
    sequence_nr = nodes.sequence_nrs(runs.node)
    is_known = np.isin(runs.node, np.fromiter(nodes, np.int64, len(nodes)))
    parts = worker_parts(trace)
    tasks, own = np.unique(runs.task, return_inverse=True)
    workers = _column(
        [parts[one].worker if one in parts else 0 for one in tasks.tolist()]
    )

    def told(texts: list[str], places: Column) -> Fact:
        """Return what is known of nodes whose definition is not lost."""
        return where_not_empty([*texts, ""], np.where(is_known, places, len(texts)))

    return Details(
        narrow_fact(*_cut(*nodes.names(runs.node))[::-1]),
        {
            "task": narrow_fact(wholes_of(trace, runs.task)),
            "node": narrow_fact(runs.node),
            "device": narrow_fact(*_cut(*nodes.names(runs.node, "device"))[::-1]),
            "topological_nr": narrow_fact(nodes.topological_nrs(runs.node)),
            "status": narrow_fact(runs.status, STATUSES),
            # That of every AccumulateGrad is none of its own.
            "sequence_nr": narrow_fact(sequence_nr, None, sequence_nr != -1),
            "inputs": _inputs(trace, runs.node),
            "waited_ns": narrow_fact(runs.waited_ns, None, runs.waited_ns >= 0),
            "thread_time_ns": narrow_fact(
                runs.thread_time_ns, None, runs.thread_time_ns >= 0
            ),
            "error": of_strings(trace, runs.error)._replace(is_told=runs.error >= 0),
            "module": told(*_cut(*nodes.names(runs.node, "module"))),
            "location": told(*_cut(*nodes.names(runs.node, "location"))),
            "worker": narrow_fact(
                workers[own], None, np.isin(runs.task, _column(list(parts)))
            ),
            "parameters": told(*_parameters(trace, runs.node)),
        },
    )


def _inputs(trace: Trace, nodes: Column) -> Fact:
    known: dict[tuple[InputDefinition | None, ...], int] = {}
    places = [known.setdefault(one, len(known)) for one in trace.nodes.inputs(nodes)]
    return where_not_empty([*map(inputs_in_words, known)], _column(places))


def _parameters(trace: Trace, nodes: Column) -> tuple[list[str], Column]:
    texts, places = trace.nodes.names(nodes, "parameter")
    names = [
        [shortened(name, MAX_TEXT) for name in text.split("\n")[:MAX_NAMES]]
        for text in texts
    ]
    return _cut([", ".join(some) for some in names], places)


def _cut(texts: list[str], places: Column) -> tuple[list[str], Column]:
    return [shortened(text, MAX_TEXT) for text in texts], places


def _column(numbers: list[int]) -> Column:
    return np.array(numbers, np.int64)
