"""Words of a moment: nodes and threads then, for a replay and for the page.

Of each list the first template is said for which the facts suffice.
"""

from collections.abc import Mapping
from functools import partial
from typing import Final

from gradviz.analysis.moments.choice import Choice
from gradviz.analysis.moments.moment import Countdown, QueuedTask
from gradviz.analysis.moments.node_stages import NodeAt
from gradviz.render.words.templates import Forms, first_filled
from gradviz.render.words.text import count, size
from gradviz.trace.probe import Push

#: State of a node: its stage, and the number of gradients it waits for, if any.
NODE_AT: Final = (
    "{stage=not reached}not reached yet",
    "{stage=waiting}waits for {remaining:number} more",
    "{stage=waiting}has all its gradients",
    "{stage=queued}in its queue",
    "{stage:text}",
)

#: State of a thread that runs no node.
THREAD_AT: Final = ("sleeps on queue {queue:text}", "between nodes")

_HAS: Final = "; {has:size} from {givers:text}[ and {more:number} more]"

#: Countdown of a node that has got gradients, and the nodes that gave them.
COUNTDOWN: Final = (
    "waits for {remaining:number} of {total:gradients}" + _HAS,
    "has all of {several:gradients}" + _HAS,
    "has its gradient" + _HAS,
)

_BEST: Final = "[the best of {several:number} others, ]{other:text}"

#: Reason why a task was the next to be popped; see `Choice`.
CHOSEN: Final = (
    "{why=alone}Nothing else was in the queue.",
    "{why=wake-up}A wake-up goes before every node: before " + _BEST + ".",
    "{why=deeper}Its pass is nested deeper, at depth {depth:id}, than that of "
    + _BEST
    + ": {other_depth:id}.",
    "{why=leaf}An AccumulateGrad has the largest sequence_nr there is; that of "
    + _BEST
    + "[{several:comma}] is {other_number:id}.",
    "{why=made later}The forward made it later, sequence_nr {made:id}, than "
    + _BEST
    + ": {other_number:id}.",
    "{why=equal wake-up}Wake-ups are equal in priority: before " + _BEST + ".",
    "{why=equal}At equal priority, sequence_nr {made:id}, the heap had it on top: "
    "before " + _BEST + ".",
    "In PyTorch's order it would have been " + _BEST + ": another thread pushed that "
    "too late, or another schedule is in force.",
)

_FORMS: Final[Forms] = {
    "comma": lambda _: ",",
    "gradients": partial(count, noun="gradient"),
    "id": str,
    "number": lambda number: f"{number:,}",
    "size": size,
    "text": str,
}


def stage_text(one: NodeAt) -> str:
    """Say what has become of a node."""
    facts = {"stage": one.stage, "remaining": one.remaining or None}
    return first_filled(NODE_AT, facts, _FORMS)


def idle_text(queue: str | None) -> str:
    """Say what a thread does that runs nothing.

    Args:
        queue: Name of the queue that it sleeps on, None while it does not.
    """
    facts: Mapping[str, object] = {"queue": queue}
    return first_filled(THREAD_AT, facts, _FORMS)


def countdown_text(one: Countdown, givers: str) -> str:
    """Say what a node waits for, and what it has.

    Args:
        one: The node, and its gradients.
        givers: Names of the nodes that gave them.
    """
    total = one.remaining + len(one.gradients)
    facts = {
        "remaining": one.remaining or None,
        "total": total,
        "several": total if total > 1 else None,
        "has": sum(gradient.size_bytes for gradient in one.gradients),
        "givers": givers,
    }
    return first_filled(COUNTDOWN, facts, _FORMS)


def choice_text(choice: Choice, other: str) -> str:
    """Say why a task was the next to be popped.

    Args:
        choice: The task, and what would have been popped without it.
        other: Name of the latter; empty if nothing else lay there.
    """
    one, rest = choice.popped, choice.other
    if rest is None:
        return first_filled(CHOSEN, {"why": "alone"}, _FORMS)
    why: str | None = choice.why
    if why == "made later" and one.sequence_nr < 0:
        why = "leaf"
    elif why == "equal" and one.what == Push.WAKE_UP:
        why = "equal wake-up"
    facts = {
        "why": why,
        "other": other,
        "several": choice.num_others if choice.num_others > 1 else None,
        "depth": one.reentrant_depth,
        "other_depth": rest.reentrant_depth,
        "made": sequence_nr_text(one),
        "other_number": sequence_nr_text(rest),
    }
    return first_filled(CHOSEN, facts, _FORMS)


def sequence_nr_text(task: QueuedTask) -> str:
    """Write a sequence_nr, of which the larger runs first."""
    return "max" if task.sequence_nr < 0 else str(task.sequence_nr)
