"""Events in words: a sentence for each kind of event, all in one table.

A kind without a sentence, a sentence with a field that its kind does not have, a member
of an enum without a word: each of them fails when this is imported.
"""

import enum
import string
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from gradviz.analysis.executions import definition
from gradviz.render.text import MAX_TITLE, clean, count, duration, place, shorten
from gradviz.trace.events import KINDS, MAX_SEQUENCE_NR, AnyEvent, Event, kind_name
from gradviz.trace.model import Trace
from gradviz.trace.probe import Hook, How, Push, Role, Skip

#: Longer errors and marks are cut.
MAX_MESSAGE: Final = 300

#: A sentence with the fields of its event; two where the second is for no node.
_Template: TypeAlias = str | tuple[str, str]

_SENTENCES: Final[Mapping[str, _Template]] = {
    "node_created": "The forward made {node}{location}, sequence_nr {sequence_nr}.",
    "tensor_saved": "{node} kept a tensor of {size_bytes} for its backward.",
    "stack_taken": "{node} was made at {stack}.",
    "task_begun": (
        "Pass {task} began{location}{parent}: {num_roots}{num_outputs}{keep_graph}"
        "{create_graph}."
    ),
    "dependencies_counted": "Pass {task} has {num_nodes} and {num_edges}.",
    "task_completed": "Pass {task} ended well.",
    "task_failed": (
        "Pass {task} failed in {node}: {error}",
        "Pass {task} failed: {error}",
    ),
    "callback_run": "Pass {task} is about to run its final callback {index}.",
    "capture_taken": "What {node} was given is result {output_index} of pass {task}.",
    "task_pushed": (
        "{node} entered {queue}{what}{pushed_by}; {queue_length} there.",
        "A wake-up for pass {task} entered {queue}; {queue_length} there.",
    ),
    "task_popped": (
        "{node} left {queue}; {queue_length} there.",
        "A wake-up for pass {task} left {queue}; {queue_length} there.",
    ),
    "queue_waited": "The thread woke up after {waited_ns} on {queue}, which was empty.",
    "node_started": "{node} started.",
    "node_completed": "{node} was done, its gradients handed on.",
    "node_failed": "{node} failed: {error}",
    "node_skipped": "{node} was skipped: {reason}.",
    "hook_called": "{node} is about to call {hook}, number {index}.",
    "hook_returned": "{node} is back from {hook}, number {index}.",
    "unexplained": (
        "{node} is not as it was expected: {text}.",
        "Pass {task} is not as it was expected: {text}.",
    ),
    "gradient_buffered": (
        "{node} was given a gradient of {size_bytes} at input {input_nr} by "
        "{producer}{how}; {remaining}."
    ),
    "gradient_accumulated": "{node} put a gradient into .grad{how}.",
    "buffer_freed": "{node} let go of what it was given, {size_bytes}.",
    "memory_allocated": "Memory {memory} was taken, {size_bytes} for {stream}.",
    "memory_shared": "Memory {memory} is used on {stream} too.",
    "memory_freed": "Memory {memory} of {stream} was freed.",
    "stream_named": "{stream} is called {name}{location}.",
    "event_recorded": (
        "Event {event} marks the work of {stream}, that of {node}.",
        "Event {event} marks the work of {stream}.",
    ),
    "stream_waited": (
        "{stream} waits for event {event} of {producer} before {node}{location}.",
        "{stream} waits for event {event}{location}.",
    ),
    "leaf_stream_synced": (
        "{caller_stream} waits for event {event} of {stream}, as pass {task} ends."
    ),
    "event_synchronized": "The host knows that event {event} has happened.",
    "stream_synchronized": "The host knows that all work of {stream} is done.",
    "device_synchronized": "The host knows that all work of{device} is done.",
    "kernel_launched": "Kernel {kernel}, {name}, was put into {stream}{location}.",
    "array_accessed": "Kernel {kernel} {writes} memory {memory} at {layout}.",
    "kernel_ran": "Kernel {kernel} ran from {began_ns} ms to {ended_ns} ms.",
    "host_accessed": "The program {writes} memory {memory} at {layout}{location}.",
    "thread_started": "The thread begins to work {role}{device}.",
    "thread_exited": "The thread no longer works {role}{device}.",
    "reentrant_entered": "Pass {task} began inside of another one, at depth {depth}.",
    "reentrant_left": "Pass {task} went back to the one that it was inside of.",
    "pool_thread_spawned": "The pool for nested backwards has {num_threads} now.",
    "handovers_heard": "From here on it is heard how threads hand over.",
    "program_thread_begun": "The program is about to start thread {key}.",
    "program_thread_entered": "This is the thread that was started as {key}.",
    "program_thread_left": "The thread that was started as {key} is done.",
    "handed_over": "The program leaves something for other threads at {key}.",
    "taken_over": "The program took what was left at {key}.",
    "mark": "The program says: {text}",
    "step_begun": "Step {step} begins.",
    "forward_begun": "Module {module} ({name}) was called: call {call}.",
    "forward_ended": "Call {call} of a module {failed}.",
    "optimizer_begun": "{name}.step() was called: call {call}.",
    "optimizer_ended": "Call {call} of an optimizer {failed}.",
    "worker_began": "Worker {worker} of {world_size} began, called {name}.",
    "worker_ended": "Worker {worker} ended.",
    "clock_compared": (
        "Worker {worker} asked worker {peer} for its clock: {peer_ns} ns, answered "
        "within {round_trip_ns}."
    ),
    "message_sent": (
        "Message {message}{pass_id} leaves for worker {peer} at {node}: {size_bytes}.",
        "Message {message}{pass_id} leaves for worker {peer}: {size_bytes}.",
    ),
    "message_received": (
        "Message {message}{pass_id} came from worker {peer} to {node}: {size_bytes}.",
        "Message {message}{pass_id} came from worker {peer}: {size_bytes}.",
    ),
}

_HOOKS: Final = {
    Hook.TENSOR_PRE: "a hook of its tensor",
    Hook.RETAINS_GRAD: "the hook that retains a gradient",
    Hook.PRE: "a hook before it runs",
    Hook.POST: "a hook after it ran",
    Hook.POST_ACCUMULATE_GRAD: "a hook after .grad has changed",
}
_HOW: Final = {
    How.FIRST: "",
    How.IN_PLACE: ", added in place",
    How.OUT_OF_PLACE: ", added to a new one",
    How.STOLEN: ", which is kept as it is",
    How.COPIED: ", which is copied",
    How.UNDEFINED: ", an undefined one",
    How.UNKNOWN: "",
}
_WHAT: Final = {Push.NODE: "", Push.ROOT: " as a root", Push.WAKE_UP: " as a wake-up"}
_ROLES: Final = {
    Role.CALLER: "as the caller of a backward",
    Role.DEVICE: "for device",
    Role.POOL: "for the pool of nested backwards, device",
}
_REASONS: Final = {Skip.ERROR: "its pass had failed"}


class EventWords:
    """Puts the events of a trace into words, with names for its numbers.

    Args:
        trace: Whose events.
        origin_ns: From when times are counted.
    """

    def __init__(self, trace: Trace, origin_ns: int) -> None:
        self._trace = trace
        self._origin_ns = origin_ns
        self._nodes: dict[int, str] = {}

    def sentence(self, event: AnyEvent) -> str:
        """What happened, and whether that was seen."""
        template = _BY_KIND[type(event)]
        if not isinstance(template, str):
            template = template[event.node < 0]
        words = template.format_map(_FieldWords(self, event))
        return f"{words} (inferred)" if event.inferred else words

    def time(self, t_ns: int) -> str:
        """When, in milliseconds, to the nanosecond: so close are events."""
        sign, ns = ("-" if t_ns < self._origin_ns else ""), abs(t_ns - self._origin_ns)
        return f"{sign}{ns // 1_000_000:,}.{ns % 1_000_000:06}"

    def node(self, node: int) -> str:
        """The name and the id of a node."""
        known = self._nodes.get(node)
        if known is None:
            name = shorten(clean(definition(self._trace, node).name), MAX_TITLE)
            known = self._nodes[node] = f"{name} ({node})" if node >= 0 else "nobody"
        return known

    def queue(self, queue: int) -> str:
        """Whose queue it is, and its id."""
        known = self._trace.queues.get(queue)
        name = shorten(clean(known.name), MAX_TITLE) if known else "?"
        return f"queue {queue} ({name})"


class _FieldWords(Mapping[str, str]):
    """The fields of an event in words, of which a sentence asks for some."""

    def __init__(self, words: EventWords, event: AnyEvent) -> None:
        self._words = words
        self._event = event

    def __getitem__(self, name: str) -> str:
        return _FIELDS[name](self._words, getattr(self._event, name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._event.__struct_fields__)

    def __len__(self) -> int:
        return len(self._event.__struct_fields__)


_Field: TypeAlias = Callable[[EventWords, Any], str]


def _number(_: EventWords, value: int) -> str:
    return str(value)


def _short(_: EventWords, text: str) -> str:
    return shorten(clean(text), MAX_TITLE)


def _message(_: EventWords, text: str) -> str:
    return shorten(clean(text), MAX_MESSAGE)


def _counted(noun: str) -> _Field:
    return lambda _, value: count(value, noun)


def _one_of(words: Mapping[Any, str]) -> _Field:
    return lambda _, value: words[value]


#: Field -> its words, whatever it is a field of. A clause begins with its comma or
#: space, and is empty where there is nothing to say.
_FIELDS: Final[Mapping[str, _Field]] = {
    "node": EventWords.node,
    "queue": EventWords.queue,
    "producer": lambda words, node: words.node(node) if node >= 0 else "the caller",
    "pushed_by": lambda words, node: (
        f", pushed by {words.node(node)}" if node >= 0 else ""
    ),
    "parent": lambda _, task: f" inside pass {task}" if task >= 0 else "",
    "location": lambda _, text: f" at {clean(place(text))}" if text else "",
    "device": lambda _, device: f" {clean(str(device))}" if device != -1 else "",
    "stack": lambda _, text: clean(" < ".join(map(place, text.split(" < ")))),
    "stream": lambda _, text: shorten(clean(text), MAX_TITLE) or "the host",
    "sequence_nr": lambda _, number: (
        "max" if number == MAX_SEQUENCE_NR else str(number)
    ),
    "num_outputs": lambda _, number: (
        f", {count(number, 'gradient')} asked for" if number else ""
    ),
    "remaining": lambda _, number: (
        f"{number:,} more to come" if number else "it was the last"
    ),
    "keep_graph": lambda _, is_so: ", the graph is kept" if is_so else "",
    "create_graph": lambda _, is_so: ", making a graph of its own" if is_so else "",
    "failed": lambda _, is_so: "raised" if is_so else "returned",
    "writes": lambda _, is_so: "writes" if is_so else "reads",
    **dict.fromkeys(("waited_ns", "round_trip_ns"), lambda _, ns: duration(ns)),
    "pass_id": lambda _, number: (
        f" with gradients of pass {number}" if number != -1 else ""
    ),
    "key": lambda _, key: f"{key:x}",
    "num_roots": _counted("root"),
    "num_nodes": _counted("node"),
    "num_edges": _counted("edge"),
    "num_threads": _counted("thread"),
    "queue_length": _counted("task"),
    "size_bytes": _counted("byte"),
    "what": _one_of(_WHAT),
    "how": _one_of(_HOW),
    "hook": _one_of(_HOOKS),
    "role": _one_of(_ROLES),
    "reason": _one_of(_REASONS),
    "began_ns": EventWords.time,
    "ended_ns": EventWords.time,
    "error": _message,
    "text": _message,
    **dict.fromkeys(("name", "module", "layout", "caller_stream"), _short),
    **dict.fromkeys(
        ("task", "memory", "event", "kernel", "depth", "step", "call"), _number
    ),
    **dict.fromkeys(("worker", "peer", "world_size", "peer_ns", "message"), _number),
    **dict.fromkeys(("index", "output_index", "input_nr"), _number),
}


def _by_kind() -> dict[type[Event], _Template]:
    """The sentences by class, after a look whether all of them can be made."""
    enums: tuple[tuple[type[enum.Enum], Mapping[Any, str]], ...] = (
        *((Hook, _HOOKS), (How, _HOW), (Push, _WHAT), (Role, _ROLES), (Skip, _REASONS)),
    )
    for members, words in enums:
        if missing := set(members) - set(words):
            raise TypeError(f"there are no words for {missing} of {members.__name__}")
    found = {}
    for kind in KINDS.values():
        template = _SENTENCES.get(kind_name(kind))
        if template is None:
            raise TypeError(
                f"no sentence tells what {kind.__name__} is: give it one in _SENTENCES "
                f"of gradviz.render.event_words"
            )
        known = {*kind.__struct_fields__} & {*_FIELDS}
        for part in string.Formatter().parse("".join(template)):
            if part[1] is not None and part[1] not in known:
                raise TypeError(f"there are no words for {kind.__name__}.{part[1]}")
        found[kind] = template
    return found


_BY_KIND: Final = _by_kind()
