"""Errors of PyTorch's passes that a recording explains."""

from collections.abc import Callable
from typing import Any

import pytest

import gradviz as gv
from gradviz.analysis.moments.pass_failures import PassFailure, explain_failure
from gradviz.pytorch.watching import changed_tensors
from gradviz.render.words.failure_text import failure_sentences
from tests.parity.pytorch_recordings import leaf

torch = pytest.importorskip("torch")


def failure_of(program: Callable[[], Any]) -> PassFailure:
    with gv.pytorch.record() as recording, pytest.raises(RuntimeError):
        program()
    found = explain_failure(recording.trace, recording.trace.tasks[-1])
    assert found is not None
    return found


def told(found: PassFailure) -> str:
    return " ".join(failure_sentences(found))


def changed(x: Any) -> Any:
    y = x.sigmoid()
    z = (y * y).sum()
    y.add_(1)
    z.backward()
    return y


def changed_output(x: Any) -> Any:
    y = torch.tanh(x)
    kept = y
    y += 1
    y.sum().backward()
    return kept


@pytest.mark.parametrize("program", [changed, changed_output])
def test_the_line_that_changed_a_tensor_in_place_is_told(
    program: Callable[..., Any],
) -> None:
    found = failure_of(lambda: program(leaf(3)))

    line = program.__code__.co_firstlineno + 3
    assert found.kind == "changed in place"
    assert [one.location.rpartition(":")[2] for one in found.changes] == [str(line)]


def rectified_in_place(x: Any) -> None:
    y = x.sigmoid()
    z = torch.relu_(y)
    (z + y).sum().backward()


def doubled_in_place(x: Any) -> None:
    y = x.exp()
    z = y * y
    y.mul_(2)
    (y + z).sum().backward()


@pytest.mark.parametrize(
    ("program", "name", "line"),
    [
        (rectified_in_place, "ReluBackward0", 2),
        (doubled_in_place, "MulBackward0", 3),
    ],
)
def test_the_last_user_of_a_tensor_that_is_gone_is_told(
    program: Callable[..., Any], name: str, line: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if the function that had the tensor were over.
    monkeypatch.setattr(changed_tensors, "find_changed", lambda *_: [])

    found = failure_of(lambda: program(leaf(3)))

    (change,) = found.changes
    assert (change.operation, change.ground) == (name, "last user")
    assert int(change.location.rpartition(":")[2]) == (
        program.__code__.co_firstlineno + line
    )
    assert "if it works in place" in told(found)


def test_a_tensor_that_no_node_changed_has_no_line() -> None:
    def program() -> None:
        y = leaf(3).sigmoid()
        z = (y * y).sum()
        y.detach().add_(1)
        z.backward()

    assert failure_of(program).changes == ()


def test_the_optimizer_that_changed_a_weight_is_named() -> None:
    net = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)

    def program() -> None:
        out = net(leaf(3, 2)).sum()
        out.backward(retain_graph=True)
        optimizer.step()
        out.backward()

    (step,) = failure_of(program).steps

    assert step.optimizer == "SGD"
    assert [one.rpartition(".")[2] for one in step.parameters] == ["weight"]


def test_a_hidden_state_that_carries_the_graph_over_is_named() -> None:
    cell = torch.nn.RNNCell(3, 4)

    def program() -> None:
        state = torch.zeros(2, 4)
        for _ in range(2):
            state = cell(torch.ones(2, 3), state)
            state.sum().backward()

    found = failure_of(program)

    assert found.released_at == found.called_at != ""
    assert [one.used.name for one in found.carriers] == ["TanhBackward0"]


class Net(torch.nn.Module):  # type: ignore[name-defined,misc]
    """A layer, and what a function makes of its result."""

    def __init__(self, after: Callable[..., Any]) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(2, 2)
        self.after = after

    def forward(self, x: Any) -> Any:
        return self.after(self, x)


def muted(net: Any, x: Any) -> Any:
    with torch.no_grad():
        return net.layer(x)


@pytest.mark.parametrize(
    ("after", "result", "sentence"),
    [
        (lambda net, x: net.layer(x).detach(), "untracked", "layer returned inside"),
        (muted, "untracked", "layer ran under no_grad"),
        (lambda net, x: net.layer(x).argmax(-1), "integers", "only integers"),
    ],
)
def test_a_loss_without_a_gradient_has_the_module_where_it_ended(
    after: Callable[..., Any], result: str, sentence: str
) -> None:
    net = Net(after)

    found = failure_of(lambda: (net(torch.ones(1, 2)) * 1.0).sum().backward())

    assert (found.kind, found.result) == ("no gradient", result)
    assert sentence in told(found)


def test_a_gradient_that_ended_after_the_model_is_told_so() -> None:
    net = torch.nn.Linear(2, 2)

    found = failure_of(lambda: net(torch.ones(1, 2)).detach().sum().backward())

    assert found.result == "tracked"
    assert "between there and the call of pass" in told(found)


def test_a_model_of_which_all_is_frozen_is_told_so() -> None:
    net = torch.nn.Linear(2, 2).requires_grad_(False)

    found = failure_of(lambda: net(torch.ones(1, 2)).sum().backward())

    assert (found.num_parameters, found.num_frozen) == (2, 2)


def test_without_modules_it_is_said_that_the_place_is_not_known() -> None:
    found = failure_of(lambda: torch.ones(2).sum().backward())

    assert found.result is None
    assert "not known" in told(found)


def test_a_program_has_its_own_error() -> None:
    def text() -> str:
        with pytest.raises(RuntimeError) as caught:
            changed(leaf(3))
        return str(caught.value)

    with gv.pytorch.record():
        recorded = text()

    assert recorded == text()
