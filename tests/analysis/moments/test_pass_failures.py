"""Failures of passes that what happened before explains."""

from collections.abc import Callable
from typing import Any

import pytest

import gradviz as gv
from gradviz import nn
from gradviz.analysis.moments.pass_failures import PassFailure, explain_failure
from gradviz.optim import SGD
from gradviz.render.words.failure_text import failure_sentences


def failure_of(program: Callable[[], Any]) -> PassFailure:
    """Return why the last pass of a program failed, which raises RuntimeError."""
    with gv.record() as recording, pytest.raises(RuntimeError):
        program()
    found = explain_failure(recording.trace, recording.trace.tasks[-1])
    assert found is not None
    return found


def told(found: PassFailure) -> str:
    return " ".join(failure_sentences(found))


def test_a_hidden_state_that_carries_the_graph_over_is_named() -> None:
    cell = nn.RNNCell(3, 4)

    def program() -> None:
        state = gv.zeros(2, 4)
        for _ in range(2):
            state = cell(gv.ones(2, 3), state)
            state.sum().backward()

    found = failure_of(program)

    assert found.kind == "released"
    assert found.node is not None
    assert found.node.name == "TanhBackward0"
    assert found.released_at == found.called_at != ""
    assert not found.is_same_graph
    (carrier,) = found.carriers
    assert carrier.used == found.node
    assert "carried the graph over" in told(found)


def test_two_passes_through_one_graph_are_told_so() -> None:
    def program() -> None:
        x = gv.ones(3, requires_grad=True)
        loss = (x * x).sum()
        loss.backward()
        loss.backward()

    found = failure_of(program)

    assert found.is_same_graph
    assert found.carriers == ()
    assert "second pass through the same graph" in told(found)


def test_a_pass_that_kept_the_graph_did_not_release_it() -> None:
    def program() -> None:
        x = gv.ones(3, requires_grad=True)
        loss = (x * x).sum()
        for keeps in (False, True):
            loss.backward(retain_graph=keeps)

    assert failure_of(program).released_by is not None


def test_an_optimizer_that_changed_the_tensor_meanwhile_is_named() -> None:
    net = nn.Linear(2, 1)
    optimizer = SGD(net.parameters(), lr=0.1)

    def program() -> None:
        x = gv.ones(3, 2, requires_grad=True)
        out = net(x).sum()
        out.backward(retain_graph=True)
        optimizer.step()
        out.backward()

    found = failure_of(program)

    assert found.kind == "changed in place"
    (step,) = found.steps
    assert (step.optimizer, [one[-6:] for one in step.parameters]) == (
        "SGD",
        ["weight"],
    )


def added_in_place(x: Any) -> None:
    y = x.sigmoid()
    y.add_(1)
    y.sum().backward()


def added_without_a_node(x: Any) -> None:
    y = x.sigmoid()
    with gv.no_grad():
        y += 1
    (y * 2).sum().backward()


def assigned_through_a_view(x: Any) -> None:
    y = x.exp()
    first = y[:1]
    first[0] = 5
    y.sum().backward()


@pytest.mark.parametrize(
    ("program", "line"),
    [(added_in_place, 2), (added_without_a_node, 3), (assigned_through_a_view, 3)],
)
def test_the_line_that_changed_a_tensor_in_place_is_known(
    program: Callable[..., Any], line: int
) -> None:
    found = failure_of(lambda: program(gv.ones(3, requires_grad=True)))

    assert found.kind == "changed in place"
    (change,) = found.changes
    assert change.ground == "recorded"
    assert int(change.location.rpartition(":")[2]) == (
        program.__code__.co_firstlineno + line
    )
    assert "It was changed in place at" in told(found)


def test_changes_before_the_tensor_was_saved_are_not_told() -> None:
    def program() -> None:
        x = gv.ones(3, requires_grad=True)
        y = x * 1
        y.add_(1)
        z = y * y
        y.mul_(2)
        z.sum().backward()

    (change,) = failure_of(program).changes

    assert (
        int(change.location.rpartition(":")[2]) == program.__code__.co_firstlineno + 5
    )


def test_a_tensor_remembers_no_lines_while_nobody_listens() -> None:
    x = gv.ones(3)
    x.add_(1)

    assert x.version is not None
    assert x.version.changes == ()


def test_other_errors_are_not_explained() -> None:
    with gv.record() as recording, pytest.raises(RuntimeError):
        gv.ones(2, requires_grad=True).backward()

    assert all(
        explain_failure(recording.trace, task) is None for task in recording.trace.tasks
    )
