"""Policies: each decides which thread runs next, wherever there is a choice.

A policy sees the candidates only, never what they are about to do. The first candidate
is the *default*: the thread that runs now, if it can go on. Choosing another one then
is a preemption. Every policy has a text (`Policy.spec`) from which `parse_policy` makes
it again, so that a schedule is repeated from one line.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from gradviz.errors import UserError


class Decision(NamedTuple):
    """Choice made at one point.

    Attributes:
        choice: Index of the chosen candidate, 0 for the default.
        num_candidates: Number of candidates; at least 2.
        is_preemption: True if any choice but 0 preempted a thread that could have
            continued.
    """

    choice: int
    num_candidates: int
    is_preemption: bool


class Policy(Protocol):
    """Chooses threads during one run; used once."""

    @property
    def spec(self) -> str:
        """The text that `parse_policy` makes this policy of."""

    def choose(self, candidates: Sequence[int]) -> int:
        """Return the index of the thread to run; there are at least two."""


class RandomWalk:
    """Every candidate is as likely as any other.

    Finds what needs many switches at no particular place.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._random = random.Random(seed).random

    @property
    def spec(self) -> str:
        """``random:SEED``."""
        return f"random:{self._seed}"

    def choose(self, candidates: Sequence[int]) -> int:
        """Any of them."""
        return int(self._random() * len(candidates))


class PriorityChanges:
    """Random priorities, which change at a few random points (PCT).

    Finds what needs few switches, but one of them at a certain place: a bug that
    takes `depth` ordering constraints is met with a probability of at least
    ``1 / (threads * length ** (depth - 1))``, whatever the program.

    Source: Burckhardt et al., A Randomized Scheduler with Probabilistic Guarantees of
    Finding Bugs, ASPLOS 2010.

    Args:
        depth: Ordering constraints looked for; one more than the points of change.
        length: About how many choices a run has: the points are spread over them.
        seed: Decides priorities and points.
    """

    def __init__(self, depth: int, length: int, seed: int) -> None:
        self._arguments = depth, length, seed
        self._random = random.Random(seed)
        points = [self._random.randrange(max(length, 1)) for _ in range(depth - 1)]
        self._lowered = {point: -index for index, point in enumerate(points, start=1)}
        self._priorities: dict[int, float] = {}
        self._num_choices = 0

    @property
    def spec(self) -> str:
        """``pct:DEPTH:LENGTH:SEED``."""
        return "pct:" + ":".join(map(str, self._arguments))

    def choose(self, candidates: Sequence[int]) -> int:
        """The one with the highest priority."""
        priorities = self._priorities
        for number in candidates:
            if number not in priorities:
                priorities[number] = self._random.random()
        lowered = self._lowered.get(self._num_choices)
        self._num_choices += 1
        best = max(candidates, key=priorities.__getitem__)
        if lowered is not None:
            priorities[best] = lowered
            best = max(candidates, key=priorities.__getitem__)
        return candidates.index(best)


class Scripted:
    """Takes the default except at given points.

    Args:
        exceptions: Number of the choice -> index of the candidate; an index that does
            not exist there takes the last one.
    """

    def __init__(self, exceptions: Mapping[int, int]) -> None:
        self.exceptions = exceptions
        self._num_choices = 0

    @property
    def spec(self) -> str:
        """``at:CHOICE=INDEX,CHOICE=INDEX...``."""
        return "at:" + ",".join(f"{at}={i}" for at, i in self.exceptions.items())

    def choose(self, candidates: Sequence[int]) -> int:
        """The default, or the exception."""
        choice = self.exceptions.get(self._num_choices, 0)
        self._num_choices += 1
        return min(choice, len(candidates) - 1)


def script_of(decisions: Sequence[Decision]) -> Scripted:
    """The script that repeats these decisions."""
    return Scripted({at: d.choice for at, d in enumerate(decisions) if d.choice})


class DepthFirst:
    """Every schedule with at most `bound` preemptions, one after the other.

    Most concurrency bugs need one or two preemptions; switches at points where a
    thread must wait anyway are free, and all of them are tried. Iterate over it, run
    each policy, and report what it decided before asking for the next::

        search = DepthFirst(bound=2)
        for policy in search:
            search.decisions = run(policy)

    Args:
        bound: Maximum number of preemptions of a schedule.

    Attributes:
        decisions: Set by the caller: those of the last run.

    Source: Musuvathi and Qadeer, Iterative Context Bounding, PLDI 2007.
    """

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self.decisions: Sequence[Decision] = ()

    def __iter__(self) -> Iterator[Scripted]:
        script: Scripted | None = Scripted({})
        while script is not None:
            yield script
            script = self._after(self.decisions)

    def _after(self, decisions: Sequence[Decision]) -> Scripted | None:
        """Change the last decision that can still be another one."""
        spent = sum(d.is_preemption and d.choice > 0 for d in decisions)
        for at in range(len(decisions) - 1, -1, -1):
            choice, num_candidates, is_preemption = decisions[at]
            spent -= is_preemption and choice > 0
            if choice + 1 < num_candidates and spent + is_preemption <= self._bound:
                script = script_of(decisions[:at])
                return Scripted({**script.exceptions, at: choice + 1})
        return None


def parse_policy(spec: str) -> Policy:
    """Make the policy that a text stands for.

    Raises:
        UserError: The text is none of ``random:SEED``, ``pct:DEPTH:LENGTH:SEED`` and
            ``at:CHOICE=INDEX,...``.
    """
    kind, _, arguments = spec.partition(":")
    try:
        match kind:
            case "random":
                return RandomWalk(int(arguments))
            case "pct":
                depth, length, seed = map(int, arguments.split(":"))
                return PriorityChanges(depth, length, seed)
            case "at":
                pairs = (pair.split("=") for pair in arguments.split(",") if pair)
                return Scripted({int(at): int(index) for at, index in pairs})
            case _:
                pass
    except ValueError:
        pass
    raise UserError(f"{spec!r} is no policy: expected {SPECS}")


#: The texts of policies, for messages.
SPECS: Final = "random:SEED, pct:DEPTH:LENGTH:SEED or at:CHOICE=INDEX,CHOICE=INDEX..."
