"""Arguments of a slice: its name, and the details in a viewer."""

from pathlib import PurePath
from typing import TypeAlias

from gradviz.analysis.tables.calls import Calls
from gradviz.analysis.tables.executions import MAX_TEXT, STATUSES, definition
from gradviz.analysis.tables.kernels import KernelRun
from gradviz.analysis.tables.worker_parts import whole_of, worker_parts
from gradviz.export.table_rows import inputs_in_words
from gradviz.export.timeline.activity import Activity
from gradviz.export.timeline.slices import FORWARD, NODE, OPTIMIZER, PASS, PUSH, Slice
from gradviz.trace.format.model import ProcessDefinition, Trace
from gradviz.trace.format.strings import shortened

Arguments: TypeAlias = dict[str, int | str]


def title(trace: Trace, what: Activity, one: Slice) -> str:
    """Return the title of a slice of a thread."""
    if one.kind == PASS:
        own = what.passes[one.place]
        name = f"backward pass {own.whole}"
        return name if own.task == own.whole else f"part of {name}"
    if one.kind == NODE:
        return definition(trace, int(what.runs.node[one.place])).name
    if one.kind == FORWARD:
        return _text(trace, what.forward.module[one.place]) or "forward"
    if one.kind == OPTIMIZER:
        return f"{_text(trace, what.optimizer.name[one.place])}.step"
    if one.kind == PUSH:
        return f"push {queued_title(trace, what, one.place)}"
    return "waiting"


def queued_title(trace: Trace, what: Activity, place: int) -> str:
    """Return the title of a task in a queue."""
    node = int(what.queueing.node[place])
    return "wake-up" if node < 0 else definition(trace, node).name


def arguments(trace: Trace, what: Activity, one: Slice) -> Arguments:
    """Return the arguments of a slice of a thread."""
    if one.kind == PASS:
        own = what.passes[one.place]
        found: Arguments = {"task": own.whole, "depth": own.depth, "status": own.status}
        if own.parent >= 0:
            found["parent"] = whole_of(trace, own.parent)
        if own.worker is not None:
            found["worker"] = own.worker
        return found | ({"error": own.error} if own.error else {})
    if one.kind == NODE:
        return _of_run(trace, what, one.place)
    if one.kind == FORWARD:
        return {"class": _text(trace, what.forward.name[one.place])} | _end(
            what.forward, one.place
        )
    if one.kind == OPTIMIZER:
        return _end(what.optimizer, one.place)
    if one.kind == PUSH:
        return of_queued(trace, what, one.place)
    return {"queue": queue_name(trace, one.place)}


def of_queued(trace: Trace, what: Activity, place: int) -> Arguments:
    """Return the arguments of a task in a queue."""
    queueing = what.queueing
    task = whole_of(trace, int(queueing.task[place]))
    return {"task": task, "node": int(queueing.node[place])}


def of_kernel(kernel: KernelRun) -> Arguments:
    """Return the arguments of a kernel of a stream."""
    found: Arguments = {
        "kernel": kernel.kernel,
        "launched_by_thread": kernel.thread,
        "waited_ns": max(kernel.start_ns - kernel.launched_ns, 0),
    }
    return found | ({"location": kernel.location} if kernel.location else {})


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


def _text(trace: Trace, place: int) -> str:
    """A text by its place among those of the trace."""
    return shortened(trace.strings[place], MAX_TEXT)


def _end(calls: Calls, place: int) -> Arguments:
    """Return the end of a call, if it did not simply return."""
    if not calls.has_ended[place]:
        return {"status": "unfinished"}
    return {"status": "failed"} if calls.failed[place] else {}


def _of_run(trace: Trace, what: Activity, place: int) -> Arguments:
    runs = what.runs
    node = definition(trace, int(runs.node[place]))
    found: Arguments = {
        "task": whole_of(trace, int(runs.task[place])),
        "node": node.id,
        "device": node.device,
        "topological_nr": node.topological_nr,
        "status": STATUSES[int(runs.status[place])],
    }
    if node.sequence_nr < 2**63:  # that of every AccumulateGrad is none of its own
        found["sequence_nr"] = node.sequence_nr
    if node.inputs:
        found["inputs"] = inputs_in_words(node)
    if runs.waited_ns[place] >= 0:
        found["waited_ns"] = int(runs.waited_ns[place])
    if runs.thread_time_ns[place] >= 0:
        found["thread_time_ns"] = int(runs.thread_time_ns[place])
    if runs.error[place] >= 0:
        found["error"] = shortened(trace.strings[int(runs.error[place])], MAX_TEXT)
    for name in ("module", "location"):
        if text := getattr(node, name):
            found[name] = text
    if part := worker_parts(trace).get(int(runs.task[place])):
        found["worker"] = part.worker
    if node.parameters:
        found["parameters"] = shortened(", ".join(node.parameters), MAX_TEXT)
    return found
