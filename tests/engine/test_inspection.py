"""What an engine says of a pass that hangs."""

from collections.abc import Iterator
from typing import Any

import pytest

from gradviz.engine import Engine, Node
from tests.engine.nodes import (
    SIM_0,
    Call,
    Mailbox,
    Pass,
    Sink,
    start_thread,
)


class Hanging:
    """A pass that waits for the test on a device; `may_end` lets it go on."""

    def __init__(self, engine: Engine) -> None:
        self.began, self.all_pushed, self.may_end = Mailbox(), Mailbox(), Mailbox()
        self.sink = Sink()
        self.waiting = Pass(device=SIM_0)
        self.node = Call(self.hang, self.sink, device=SIM_0)
        last = Call(lambda grad: self.all_pushed.send() or ())
        root: Node = Pass(self.sink, self.node, self.waiting, last)
        self.call = start_thread(lambda: engine.execute([(root, 0)], [1]))
        self.began.wait()
        self.all_pushed.wait()

    def hang(self, grad: Any) -> Any:
        self.began.send()
        self.may_end.wait()
        return (grad,)


@pytest.fixture
def hanging(engine: Engine) -> Iterator[Hanging]:
    one = Hanging(engine)
    yield one
    one.may_end.send()
    one.call.result(10)


def test_it_names_passes_queues_unmet_dependencies_and_stacks(
    engine: Engine, hanging: Hanging
):
    """RE8: `dump_state`, from another thread and without a lock."""
    text = engine.dump_state()

    assert text.startswith("1 pass under way\n")
    assert f"{hanging.sink!r} waits for 1 more gradients" in text
    assert f"device 0: 1 task: {hanging.waiting!r}" in text
    assert f"thread gv_autograd_0\n  runs {hanging.node!r} of" in text
    assert "in hang\n" in text


def test_an_idle_engine_has_nothing_to_say(engine: Engine):
    engine.execute([(Sink(), 0)], [1])

    assert engine.dump_state().startswith("0 passes under way\n")


def test_a_watchdog_reports_a_standstill(engine: Engine, hanging: Hanging):
    """RE8."""
    reports: list[str] = []
    came = Mailbox()

    def write(text: str) -> None:
        reports.append(text)
        came.send()

    engine.watch(0.01, write)
    came.wait()
    engine.watch(0, write)

    assert repr(hanging.node) in reports[0]


def test_a_pass_inside_a_pass_is_shown_with_who_called_it(engine: Engine):
    """RE8: what may deadlock over a user's lock."""
    texts: list[str] = []
    inner = Call(lambda grad: texts.append(engine.dump_state()) or ())
    outer = Call(lambda grad: engine.execute([(inner, 0)], [grad]))

    engine.execute([(outer, 0)], [1])

    assert texts[0].startswith("2 passes under way\n")
    assert f"{outer!r} of <GraphTask #" in texts[0]
    assert "called backward, which waits;" in texts[0]
