"""Sentences on the worker that a gradient came from or went to.

They are those of `gradviz explain` and of the page.
"""

from typing import NamedTuple

from gradviz.analysis.nodes.rpc_edges import RpcEdge
from gradviz.render.words.text import clean, duration, size


class RpcEdgeSentence(NamedTuple):
    """A sentence that may name a node, for who makes a link of it.

    Attributes:
        before: The words before its name.
        node: The node, -1 for none.
        name: Its class.
        number: Its place in the execution order of the pass, -1 for none.
        after: The words after it.
        has_come: False where it says that a gradient never came.
    """

    before: str
    node: int
    name: str
    number: int
    after: str
    has_come: bool = True

    @property
    def named(self) -> str:
        """Text between those: nothing where there is no node."""
        if self.node < 0:
            return ""
        place = f"#{self.number} " if self.number >= 0 else ""
        return f"{place}{clean(self.name)} ({self.node})"

    @property
    def text(self) -> str:
        """All of it."""
        return f"{self.before}{self.named}{self.after}"


def arrival_of(crossing: RpcEdge) -> RpcEdgeSentence | None:
    """Whence the gradient of a send came; None of a receive.

    Times have to be counted from the start of its pass.
    """
    if crossing.end != "send":
        return None
    who = _peer(crossing)
    if crossing.received_ns is None:
        return _never_came(crossing, who)
    by = f"{who}, sent by " if crossing.node >= 0 else who
    if crossing.sent_ns is None:
        after = (
            f" ({_what(crossing)}), its send time is not recorded; it arrived "
            f"{_moment(crossing.received_ns)}, and {_lay(crossing)}."
        )
    else:
        after = f" {_moment(crossing.sent_ns)} ({_what(crossing)}); {_way(crossing)}."
    return _sentence(f"Its gradient came from {by}", crossing, after)


def departure_of(crossing: RpcEdge) -> RpcEdgeSentence | None:
    """Return the departure of a receive's gradient; None for a send."""
    if crossing.end != "receive":
        return None
    to = _peer(crossing) + (", to " if crossing.node >= 0 else "")
    if crossing.sent_ns is None:
        after = f" ({_what(crossing)}), and no departure is recorded."
        return _sentence(f"Its gradient is for {to}", crossing, after)
    after = f", {_moment(crossing.sent_ns)} ({_what(crossing)}); {_way(crossing)}."
    return _sentence(f"It sent its gradient to {to}", crossing, after)


def _never_came(crossing: RpcEdge, who: str) -> RpcEdgeSentence:
    before = f"Its gradient never came: {who}"
    if crossing.sent_ns is not None:
        by = ", from " if crossing.node >= 0 else ""
        before += f" sent it {_moment(crossing.sent_ns)}{by}"
        rest = "and no arrival is recorded."
    else:
        by = " as " if crossing.node >= 0 else ""
        before += f", which has what it sent{by}"
        rest = "is not recorded as having sent one back."
    said = _sentence(before, crossing, f" ({_what(crossing)}), {rest}")
    return said._replace(has_come=False)


def _sentence(before: str, crossing: RpcEdge, after: str) -> RpcEdgeSentence:
    return RpcEdgeSentence(before, crossing.node, crossing.name, crossing.index, after)


def _peer(crossing: RpcEdge) -> str:
    own = "its own " if crossing.peer == crossing.worker else ""
    return f"{own}worker {crossing.peer}"


def _what(crossing: RpcEdge) -> str:
    number = f"message {crossing.message}"
    if crossing.size_bytes is None:
        return number
    return f"{number}, {size(crossing.size_bytes)}"


def _moment(ns: int) -> str:
    return f"{duration(abs(ns))} {'before' if ns < 0 else 'after'} the pass began"


def _way(crossing: RpcEdge) -> str:
    """Return the times that it was on its way, and then waited."""
    if crossing.sent_ns is None or crossing.received_ns is None:
        return "no arrival is recorded"
    took_ns = crossing.received_ns - crossing.sent_ns
    lay = f", and {_lay(crossing)}"
    if crossing.contradicts:
        early = duration(-took_ns)
        return f"the clocks disagree: it arrived {early} before it left{lay}"
    return f"it took {duration(took_ns)} to arrive{lay}"


def _lay(crossing: RpcEdge) -> str:
    if crossing.start_ns is None or crossing.received_ns is None:
        return "nothing ran for it"
    lay = duration(max(crossing.start_ns - crossing.received_ns, 0))
    return f"waited {lay} until {'this' if crossing.end == 'send' else 'that'} ran"
