"""Events in words: a sentence for each kind of event, all in one table.

The sentences are templates of the fields of an event, for Python and for the page. A
kind without a sentence is told by what its class says. A sentence with a field that its
kind does not have, a member of an enum without a word: both fail when this is imported.
"""

import enum
import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple, TypeAlias

from gradviz.analysis.tables.executions import NodeNumbers, definition
from gradviz.analysis.tables.worker_parts import whole_of, worker_parts
from gradviz.render.words.templates import Forms, facts_in, first_filled, forms_in
from gradviz.render.words.text import MAX_TITLE, clean, count, duration, place, shorten
from gradviz.trace.events import (
    KINDS,
    MAX_SEQUENCE_NR,
    AnyEvent,
    Event,
    kind_name,
    label,
    own_columns,
)
from gradviz.trace.format.model import Trace
from gradviz.trace.probe import INFERRED_SUFFIX, Checked, Hook, How, Push, Role, Skip

#: Longer errors and marks are cut.
MAX_MESSAGE: Final = 300


def _clauses(field: str, words: Mapping[enum.IntEnum, str]) -> str:
    """Return a clause for each member of an enum that there are words for."""
    members = type(next(iter(words)))
    if missing := set(members) - set(words):
        raise TypeError(f"there are no words for {missing} of {members.__name__}")
    return "".join(
        f"[{{{field}={label(one)}}}{said}]" for one, said in words.items() if said
    )


_HOOK: Final = _clauses(
    "hook",
    {
        Hook.TENSOR_PRE: "a tensor hook",
        Hook.RETAINS_GRAD: "the retain_grad hook",
        Hook.PRE: "a pre-hook",
        Hook.POST: "a post-hook",
        Hook.POST_ACCUMULATE_GRAD: "a post-accumulate-grad hook",
        Hook.MODULE_PRE: "a backward pre-hook of a module",
        Hook.MODULE: "a backward hook of a module",
    },
)
_HOW: Final = _clauses(
    "how",
    {
        How.FIRST: "",
        How.IN_PLACE: ", added in place",
        How.OUT_OF_PLACE: ", added out of place",
        How.STOLEN: ", stored without a copy",
        How.COPIED: ", stored as a copy",
        How.UNDEFINED: ", which is undefined",
        How.UNKNOWN: "",
    },
)
_WHAT: Final = _clauses(
    "what", {Push.NODE: "", Push.ROOT: " as a root", Push.WAKE_UP: " as a wake-up"}
)
_ROLE: Final = (
    _clauses(
        "role",
        {
            Role.CALLER: "as the caller of a backward",
            Role.DEVICE: "for device",
            Role.POOL: "for the pool of nested passes, device",
        },
    )
    + "[ {device:text}]"
)
_REASON: Final = _clauses("reason", {Skip.ERROR: "its pass had failed"})
_CHECKED: Final = _clauses(
    "what",
    {
        Checked.RESULT: "result {index:number} of {name:name}",
        Checked.GRADIENT: "gradient {index:number} that {node:node} made",
        Checked.SUM: "gradient {index:number} that {node:node} received",
        Checked.LOSS: "loss {index:number}",
        Checked.PARAMETER: "parameter {name:name}",
    },
)
_WRITES: Final = "[{writes=yes}writes][{writes=no}reads]"
_FAILED: Final = "[{failed=yes}raised][{failed=no}returned]"

_AT: Final = "[ at {location:text}]"
_LEFT: Final = " left {queue:queue}[; {queue_length:tasks} there]."
_GIVEN: Final = (
    "{node:node} received a gradient[ of {size_bytes:bytes}] at input {input_nr:id} "
    "from {producer:node}" + _HOW
)
_MESSAGE: Final = "Message {message:id}[{pass_id=known} with gradients]"

#: Templates of each kind of event; the first is said whose facts are known. The facts
#: are the fields of the event, see `event_facts`.
EVENT_SENTENCES: Final[Mapping[str, tuple[str, ...]]] = {
    "node_created": (
        "The forward made {node:node}" + _AT + "[, sequence_nr {sequence_nr:id}].",
    ),
    "tensor_saved": (
        "{node:node} saved a tensor of {size_bytes:bytes} for its backward.",
        "{node:node} saved a tensor of unknown size for its backward.",
    ),
    "saved_elsewhere": (
        (
            "{node:node} also saved {parameter_bytes:bytes} of parameters and buffers, "
            "and {shared_bytes:bytes} that another saved tensor counts."
        ),
    ),
    "stack_taken": ("{node:node} was made at {stack:text}.",),
    "task_begun": (
        "Pass {task:pass} began" + _AT + "[ inside pass {parent:pass}]"
        "[: {num_roots:roots}][, {num_outputs:gradients} requested]"
        "[{keep_graph=yes}, with retain_graph]"
        "[{create_graph=yes}, with create_graph].",
    ),
    "dependencies_counted": (
        "Pass {task:pass} has {num_nodes:nodes} and {num_edges:edges}.",
    ),
    "task_completed": ("Pass {task:pass} completed.",),
    "task_failed": (
        "Pass {task:pass} failed in {node:node}: {error:message}",
        "Pass {task:pass} failed: {error:message}",
    ),
    "callback_run": (
        "Pass {task:pass} is about to run its final callback {index:id}.",
    ),
    "capture_taken": (
        (
            "Pass {task:pass} captured the gradient of {node:node} as result"
            "[ {output_index:id}]."
        ),
    ),
    "task_pushed": (
        "{node:node} entered {queue:queue}" + _WHAT + "[, pushed by {pushed_by:node}]"
        "[; {queue_length:tasks} there].",
        (
            "A wake-up for pass {task:pass} entered {queue:queue}"
            "[; {queue_length:tasks} there]."
        ),
    ),
    "task_popped": (
        "{node:node}" + _LEFT,
        "A wake-up for pass {task:pass}" + _LEFT,
    ),
    "queue_waited": (
        (
            "The thread woke up after {waited_ns:duration} on {queue:queue}, which was "
            "empty."
        ),
    ),
    "node_started": ("{node:node} started.",),
    "node_completed": ("{node:node} completed and passed on its gradients.",),
    "node_failed": ("{node:node} failed: {error:message}",),
    "node_skipped": ("{node:node} was skipped: " + _REASON + ".",),
    "hook_called": (
        "{node:node} is about to call " + _HOOK + ", number {index:id}"
        "[: {function:name}][ at {defined_at:text}][, registered at "
        "{registered_at:text}][, of {target:name}].",
    ),
    "hook_returned": ("{node:node} returned from " + _HOOK + ", number {index:id}.",),
    "unexplained": (
        "Unexpected at {node:node}: {text:message}.",
        "Unexpected in pass {task:pass}: {text:message}.",
    ),
    "not_finite": (
        "The first [{is_nan=yes}NaN][{is_nan=no}infinity]: " + _CHECKED + "[, in module"
        " {module:name}]" + _AT + "[; largest magnitude of its inputs {largest:text}].",
    ),
    "gradient_buffered": (
        _GIVEN + "; {remaining:number} more to come.",
        _GIVEN + "; it was the last.",
    ),
    "gradient_accumulated": (
        "{node:node} accumulated a gradient into .grad" + _HOW + ".",
    ),
    "buffer_freed": ("{node:node} released its inputs[, {size_bytes:bytes}].",),
    "memory_allocated": (
        "Memory {memory:id} was allocated, {size_bytes:bytes} for {stream:name}.",
    ),
    "memory_shared": ("Memory {memory:id} is also used on {stream:name}.",),
    "memory_freed": ("Memory {memory:id} of {stream:name} was freed.",),
    "stream_named": ("{stream:name} is called {name:name}" + _AT + ".",),
    "event_recorded": (
        "Event {event:id} was recorded on {stream:name} after the work of {node:node}.",
        "Event {event:id} was recorded on {stream:name}.",
    ),
    "stream_waited": (
        "{stream:name} waits for event {event:id} of {producer:node} before "
        "{node:node}" + _AT + ".",
        "{stream:name} waits for event {event:id}" + _AT + ".",
    ),
    "leaf_stream_synced": (
        (
            "{caller_stream:name} waits for event {event:id} of {stream:name}, as pass "
            "{task:pass} ends."
        ),
    ),
    "event_synchronized": ("The host knows that event {event:id} has happened.",),
    "stream_synchronized": ("The host knows that all work of {stream:name} is done.",),
    "device_synchronized": (
        "The host knows that all work of[ {device:text}] is done.",
    ),
    "kernel_launched": (
        "Kernel {kernel:id}, {name:name}, was launched on {stream:name}" + _AT + ".",
    ),
    "array_accessed": (
        "Kernel {kernel:id} " + _WRITES + " memory {memory:id} at {layout:name}.",
    ),
    "kernel_ran": (
        "Kernel {kernel:id} ran from {began_ns:time} ms to {ended_ns:time} ms.",
    ),
    "host_accessed": (
        "The program " + _WRITES + " memory {memory:id} at {layout:name}" + _AT + ".",
    ),
    "thread_started": ("The thread starts to work " + _ROLE + ".",),
    "thread_exited": ("The thread stops working " + _ROLE + ".",),
    "reentrant_entered": (
        "Pass {task:pass} began inside another pass[, at depth {depth:id}].",
    ),
    "reentrant_left": ("Pass {task:pass} returned to the pass around it.",),
    "pool_thread_spawned": (
        "The pool for nested passes now has {num_threads:threads}.",
    ),
    "handovers_heard": ("From here on, handovers between threads are recorded.",),
    "program_thread_begun": ("The program is about to start thread {key:hex}.",),
    "program_thread_entered": ("This thread was started as {key:hex}.",),
    "program_thread_left": ("The thread that was started as {key:hex} ended.",),
    "handed_over": ("The program handed something to other threads at {key:hex}.",),
    "taken_over": ("The program took what was handed over at {key:hex}.",),
    "mark": ("The program says: {text:message}",),
    "step_begun": ("Step {step:id} begins.",),
    "forward_begun": (
        "Module {module:name} ({name:name}) was called: call {call:id}.",
    ),
    "forward_ended": ("Call {call:id} of a module " + _FAILED + ".",),
    "optimizer_begun": ("{name:name}.step() was called: call {call:id}.",),
    "tensor_changed": (
        "Pass {task:pass} needs a tensor that was changed in place: maybe by "
        "{operation:name}" + _AT + ".",
        "Pass {task:pass} needs a tensor that was changed in place" + _AT + ".",
    ),
    "gradient_cut": ("Gradients end at {operation:name}" + _AT + ".",),
    "gradient_measured": (
        "The .grad of {node:node} had the norm {norm:text} after pass {task:pass}.",
    ),
    "graph_kept": (
        "The program keeps {num_nodes:nodes} of graphs alive, the first of them below "
        "{root:name}" + _AT + ".",
    ),
    "requires_grad_set": (
        (
            "Parameter {parameter:name} requires [{requires_grad=yes}a gradient]"
            "[{requires_grad=no}no gradient] from here on."
        ),
    ),
    "parameter_held": (
        "Optimizer {optimizer:name} holds parameter {parameter:name}, {shape:text}.",
        "Optimizer {optimizer:name} holds a tensor of no module, {shape:text}.",
    ),
    "optimizer_ended": ("Call {call:id} of an optimizer " + _FAILED + ".",),
    "worker_began": (
        "Worker {worker:id} of {world_size:id} began, called {name:name}.",
    ),
    "worker_ended": ("Worker {worker:id} ended.",),
    "clock_compared": (
        (
            "Worker {worker:id} asked worker {peer:id} for its clock: {peer_ns:id} ns, "
            "answered within {round_trip_ns:duration}."
        ),
    ),
    "message_sent": (
        _MESSAGE + " leaves for worker {peer:id} at {node:node}: {size_bytes:bytes}.",
        _MESSAGE + " leaves for worker {peer:id}: {size_bytes:bytes}.",
    ),
    "message_received": (
        _MESSAGE + " came from worker {peer:id} to {node:node}: {size_bytes:bytes}.",
        _MESSAGE + " came from worker {peer:id}: {size_bytes:bytes}.",
    ),
    "collective_began": (
        "Collective {collective:id}, {name:name}, began, launched by {node:node}.",
        "Collective {collective:id}, {name:name}, began.",
    ),
    "collective_ended": ("Collective {collective:id} ended.",),
    "gradient_bucketed": (
        "The gradient of {node:node} went into bucket {bucket:id} of {model:name}.",
        "The gradient of {node:node} went into an unknown bucket of {model:name}.",
    ),
}


class _NamesByNumber(dict[Any, str]):
    """Names of things by their number, each found once.

    Args:
        find: Finds the name of one.
    """

    def __init__(self, find: Callable[[Any], str]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, number: int) -> str:
        name = self[number] = self._find(number)
        return name


class EventWords:
    """Puts the events of a trace into words, with names for its numbers.

    Args:
        trace: Trace with the events.
        origin_ns: Time from which times are counted.
        numbers: Numbers of nodes, which are told with them; None for their ids alone.
    """

    def __init__(
        self, trace: Trace, origin_ns: int, numbers: NodeNumbers | None = None
    ) -> None:
        self._trace = trace
        self._origin_ns = origin_ns
        self._numbers = numbers
        self._in_order: Mapping[int, int] = {}
        self._nodes = _NamesByNumber(self._node)
        self._queues = _NamesByNumber(self._queue)
        self._in_passes: dict[int, EventWords] = {}
        self._forms: Forms = {
            **_FORMS,
            "node": self._nodes.__getitem__,
            "pass": _NamesByNumber(self.task).__getitem__,
            "queue": self._queues.__getitem__,
            "time": self.time,
        }

    def in_pass(self, task: int) -> "EventWords":
        """Return the words with the numbers of a pass: a leaf has another in each."""
        if self._numbers is None or task < 0:
            return self
        if task not in self._in_passes:
            words, in_order = self, self._numbers.of_pass(task)
            if in_order:  # as in few of the many passes of a trace that was damaged
                words = EventWords(self._trace, self._origin_ns)
                words._in_order = in_order
            self._in_passes[task] = words
        return self._in_passes[task]

    def sentence(self, event: AnyEvent) -> str:
        """Say what happened, and whether that was seen."""
        words = self.in_pass(event.task)
        texts = _BY_KIND[type(event)].texts
        said = first_filled(texts, event_facts(event), words._forms)
        said = said or words._plainly(event)
        return said + INFERRED_SUFFIX if event.inferred else said

    def _plainly(self, event: AnyEvent) -> str:
        """Return what the class of an event says, with its node and fields."""
        kind = type(event)
        meaning, _, _ = (inspect.getdoc(kind) or kind.__name__).partition("\n")
        fields = [
            f"{one.name} {_plain(getattr(event, one.name))}"
            for one in own_columns(kind)
        ]
        return f"{meaning.rstrip('.')}: {', '.join([self.node(event.node), *fields])}."

    def time(self, t_ns: int) -> str:
        """Return a time in milliseconds, to the nanosecond, as close as events are."""
        ns = t_ns - self._origin_ns
        if ns < 0:
            return f"-{-ns // 1_000_000:,}.{-ns % 1_000_000:06}"
        return f"{ns // 1_000_000:,}.{ns % 1_000_000:06}"

    def pass_number(self, task: int) -> str:
        """The number of the pass that a GraphTask is a part of, nothing for none."""
        return "" if task < 0 else str(whole_of(self._trace, task))

    def task(self, task: int) -> str:
        """The number of a pass, and whose part of it a GraphTask is."""
        part = worker_parts(self._trace).get(task)
        if part is None:
            return str(task)
        return f"{part.whole} on worker {part.worker}"

    def node(self, node: int) -> str:
        """Name and id of a node, after its number if it has one."""
        return self._nodes[node]

    def number(self, node: int) -> str:
        """``#5`` and a space; nothing for a node without a number."""
        return f"#{self._in_order[node]} " if node in self._in_order else ""

    def queue(self, queue: int) -> str:
        """Return a queue's owner, and its id."""
        return self._queues[queue]

    def _node(self, node: int | str) -> str:
        if isinstance(node, str):
            return node
        if node < 0:
            return "nobody"
        name = shorten(clean(definition(self._trace, node).name), MAX_TITLE)
        return f"{self.number(node)}{name} ({node})"

    def _queue(self, queue: int) -> str:
        known = self._trace.queues.get(queue)
        name = known.name if known else "?"
        # An event of a queue that was inferred is inferred itself, and says so.
        name = shorten(clean(name.removesuffix(INFERRED_SUFFIX)), MAX_TITLE)
        return f"queue {queue} ({name})"


def event_facts(event: AnyEvent) -> dict[str, object]:
    """Return the fields that the sentences of an event ask for; None says nothing."""
    return {
        name: getattr(event, name) if told is None else told(getattr(event, name))
        for name, told in _BY_KIND[type(event)].facts
    }


#: Makes the fact of a field's value; None where the value is the fact.
_Telling: TypeAlias = Callable[[Any], object] | None


class _Sentences(NamedTuple):
    """Templates of a kind, and the facts that they ask for, each from its field."""

    texts: tuple[str, ...]
    facts: tuple[tuple[str, _Telling], ...]


def _telling(field_type: type[object]) -> _Telling:
    """Return what makes facts of a type: yes or no, labels, clean texts, numbers."""
    if issubclass(field_type, bool):
        return {True: "yes", False: "no"}.__getitem__
    if issubclass(field_type, enum.IntEnum):
        return {one: label(one) for one in field_type}.__getitem__
    return clean if issubclass(field_type, str) else None


def _known(number: int) -> int | None:
    return number if number >= 0 else None


#: Field -> what makes its fact, whatever it is a field of, where its type does not say.
_FACTS: Final[Mapping[str, Callable[[Any], object]]] = {
    **dict.fromkeys(("node", "parent", "pushed_by"), _known),
    **dict.fromkeys(("num_outputs", "remaining"), lambda number: number or None),
    "producer": lambda node: node if node >= 0 else "the caller",
    **dict.fromkeys(
        ("defined_at", "location", "registered_at"),
        lambda text: clean(place(text)) or None,
    ),
    **dict.fromkeys(("function", "target"), lambda text: clean(text) or None),
    "device": lambda device: None if device == -1 else clean(str(device)),
    "stack": lambda text: clean(place(text)),
    "stream": lambda text: clean(text) or "the host",
    "sequence_nr": lambda number: "max" if number == MAX_SEQUENCE_NR else number,
    "pass_id": lambda number: None if number == -1 else "known",
}


def _plain(value: object) -> str:
    text = label(value) if isinstance(value, enum.IntEnum) else str(value)
    return shorten(clean(text), MAX_TITLE)


_COUNTED: Final = ("edge", "gradient", "node", "root", "task", "thread")

#: The same few sizes, numbers and names come again and again.
_remembered: Final = lru_cache(maxsize=1 << 12)

#: Forms of facts; nodes, passes and queues have names of the trace.
_FORMS: Final[Forms] = {
    **{f"{noun}s": _remembered(partial(count, noun=noun)) for noun in _COUNTED},
    "bytes": _remembered(
        lambda size: count(size, "byte") if size >= 0 else "unknown size"
    ),
    "duration": duration,
    "hex": lambda key: f"{key:x}",
    "id": str,
    "message": partial(shorten, length=MAX_MESSAGE),
    "name": _remembered(partial(shorten, length=MAX_TITLE)),
    "number": lambda number: f"{number:,}",
    "text": str,
}
_FORM_NAMES: Final = frozenset({*_FORMS, "node", "pass", "queue", "time"})


def _by_kind() -> dict[type[Event], _Sentences]:
    """Return the sentences by class, after a look whether each can be filled."""
    found = {}
    for kind in KINDS.values():
        texts = EVENT_SENTENCES.get(kind_name(kind), ())
        names = sorted(set().union(*map(facts_in, texts)))
        if unknown := {*names} - {*kind.__struct_fields__}:
            raise TypeError(f"{kind.__name__} has no {unknown}, for its sentence")
        if unknown := set().union(*map(forms_in, texts)) - _FORM_NAMES:
            raise TypeError(f"there are no forms {unknown}, for {kind.__name__}")
        types = {one.name: one.type for one in own_columns(kind)}
        facts = tuple(
            (name, _FACTS.get(name) or _telling(types.get(name, int))) for name in names
        )
        found[kind] = _Sentences(texts, facts)
    return found


_BY_KIND: Final = _by_kind()
