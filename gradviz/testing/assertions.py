"""Assertions about the events of a pass: those that happened, and their order.

Threads may run in many orders, so a test says no more than what must hold in each:
these events happened one after the other, with whatever else between them, and those
in any order. For events of an `EventList` and of a trace (``trace.events()``) alike.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from gradviz.trace.checking.lifecycle import check_events
from gradviz.trace.events import AnyEvent, Event


class Expected:
    """Any event of a kind that has these values; all else of it may be as it likes.

    Two that say the same are two events.

    Args:
        kind: Class of the event, or `Event` for all.
        **fields: Values of some of its fields.

    Raises:
        TypeError: An event of this kind has no such field.
    """

    __slots__ = ("fields", "kind")

    def __init__(self, kind: type[Event], **fields: object) -> None:
        if unknown := fields.keys() - set(kind.__struct_fields__):
            raise TypeError(
                f"{kind.__name__} has no field {', '.join(sorted(unknown))}, only "
                f"{', '.join(kind.__struct_fields__)}"
            )
        self.kind = kind
        self.fields = fields

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.fields.items())
        return f"{self.kind.__name__}({given})"

    def fits(self, event: Event) -> bool:
        """Return whether an event is one of those."""
        return isinstance(event, self.kind) and all(
            getattr(event, name) == value for name, value in self.fields.items()
        )


def assert_sequence(
    events: Iterable[AnyEvent], *steps: Expected | AbstractSet[Expected]
) -> None:
    """Check that events contain a sequence; anything may happen between its steps.

    Args:
        events: In their order.
        *steps: An event that is expected, or a set of events that are expected in any
            order; each step comes after all events of the one before.

    Raises:
        AssertionError: A step is missing; the message says which, after what, and
            which events of its kind there were.
    """
    known = tuple(events)
    rest = iter(known)
    last: AnyEvent | None = None
    for number, step in enumerate(steps, start=1):
        wanted = (step,) if isinstance(step, Expected) else tuple(step)
        taken: dict[Expected, AnyEvent] = {}
        while len(taken) < len(wanted):
            event = next(rest, None)
            if event is None:
                missing = [one for one in wanted if one not in taken]
                raise AssertionError(
                    f"step {number} of {len(steps)} is missing: {missing}\n"
                    f"after: {last or 'the beginning'}\n"
                    f"of its kind were there:{_alike(missing, known)}"
                )
            if _take(event, wanted, taken, set()):
                last = event


def assert_lifecycle(events: Iterable[AnyEvent]) -> None:
    """Check that events are a possible history: see `gradviz.trace.checking.lifecycle`.

    Args:
        events: All that an engine reported, in their order.

    Raises:
        AssertionError: They break rules; the message has them, a line each.
    """
    if violations := check_events(events):
        raise AssertionError("\n".join(map(str, violations)))


def _alike(missing: Sequence[Expected], events: Sequence[AnyEvent]) -> str:
    kinds = tuple({one.kind for one in missing})
    alike = [str(event) for event in events if isinstance(event, kinds)]
    return "".join(f"\n  {event}" for event in alike) or " none"


def _take(
    event: AnyEvent,
    wanted: tuple[Expected, ...],
    taken: dict[Expected, AnyEvent],
    tried: set[Expected],
) -> bool:
    """Assign an event to an expectation; its previous event may move to another.

    So the set is complete as soon as there is any way to share the events out.
    """
    for one in wanted:
        if one not in tried and one.fits(event):
            tried.add(one)
            if one not in taken or _take(taken[one], wanted, taken, tried):
                taken[one] = event
                return True
    return False
