"""From which worker a gradient came, and to which one went, in sentences.

Those of `gradviz explain` and of the page.
"""

from typing import NamedTuple

from gradviz.analysis.crossings import Crossing
from gradviz.render.text import clean, duration, size


class CrossingSentence(NamedTuple):
    """A sentence that may name a node, for who makes a link of it.

    Attributes:
        before: The words before its name.
        node: The node, -1 for none.
        name: Its class.
        after: The words after it.
    """

    before: str
    node: int
    name: str
    after: str

    @property
    def named(self) -> str:
        """What stands between those: nothing where there is no node."""
        return f"{clean(self.name)} ({self.node})" if self.node >= 0 else ""

    @property
    def text(self) -> str:
        """All of it."""
        return f"{self.before}{self.named}{self.after}"


def came(crossing: Crossing) -> CrossingSentence | None:
    """Whence the gradient of a send came; None of a receive.

    Times have to be counted from the begin of its pass.
    """
    if crossing.end != "send":
        return None
    who = _peer(crossing)
    if crossing.received_ns is None:
        return _never_came(crossing, who)
    by = f"{who}, sent by " if crossing.node >= 0 else who
    if crossing.sent_ns is None:
        after = (
            f" ({_what(crossing)}), when is not recorded; it was there "
            f"{_moment(crossing.received_ns)}, and {_lay(crossing)}."
        )
    else:
        after = f" {_moment(crossing.sent_ns)} ({_what(crossing)}); {_way(crossing)}."
    return _sentence(f"Its gradient came from {by}", crossing, after)


def went(crossing: Crossing) -> CrossingSentence | None:
    """Where a receive sent its gradient; None of a send."""
    if crossing.end != "receive":
        return None
    to = _peer(crossing) + (", to " if crossing.node >= 0 else "")
    if crossing.sent_ns is None:
        after = f" ({_what(crossing)}), and nothing recorded says that it left."
        return _sentence(f"Its gradient is for {to}", crossing, after)
    after = f", {_moment(crossing.sent_ns)} ({_what(crossing)}); {_way(crossing)}."
    return _sentence(f"It sent its gradient to {to}", crossing, after)


def _never_came(crossing: Crossing, who: str) -> CrossingSentence:
    said = "Its gradient never came:"
    if crossing.sent_ns is not None:
        by = ", from " if crossing.node >= 0 else ""
        return _sentence(
            f"{said} {who} sent it {_moment(crossing.sent_ns)}{by}",
            crossing,
            f" ({_what(crossing)}), and nothing recorded says that it arrived.",
        )
    by = " as " if crossing.node >= 0 else ""
    return _sentence(
        f"{said} {who}, which has what it sent{by}",
        crossing,
        f" ({_what(crossing)}), is not recorded to have sent one back.",
    )


def _sentence(before: str, crossing: Crossing, after: str) -> CrossingSentence:
    return CrossingSentence(before, crossing.node, crossing.name, after)


def _peer(crossing: Crossing) -> str:
    own = "its own " if crossing.peer == crossing.worker else ""
    return f"{own}worker {crossing.peer}"


def _what(crossing: Crossing) -> str:
    number = f"message {crossing.message}"
    if crossing.size_bytes is None:
        return number
    return f"{number}, {size(crossing.size_bytes)}"


def _moment(ns: int) -> str:
    return f"{duration(abs(ns))} {'before' if ns < 0 else 'after'} the pass began"


def _way(crossing: Crossing) -> str:
    """How long it was on its way, and then lay."""
    if crossing.sent_ns is None or crossing.received_ns is None:
        return "nothing recorded says that it arrived"
    took_ns = crossing.received_ns - crossing.sent_ns
    lay = f", and {_lay(crossing)}"
    if crossing.contradicts:
        early = duration(-took_ns)
        return f"by clocks that disagree it came {early} before it left{lay}"
    return f"it was {duration(took_ns)} on its way{lay}"


def _lay(crossing: Crossing) -> str:
    if crossing.start_ns is None or crossing.received_ns is None:
        return "nothing ran for it"
    lay = duration(max(crossing.start_ns - crossing.received_ns, 0))
    return f"lay {lay} until {'this' if crossing.end == 'send' else 'that'} ran"
