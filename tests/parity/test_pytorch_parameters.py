"""Parameters of PyTorch's models, and reasons why some got no gradient."""

from collections.abc import Callable
from typing import Any

import pytest

from gradviz.analysis.nodes.missing_gradients import NoGradient
from gradviz.analysis.nodes.parameter_gradients import (
    ParameterGradients,
    find_parameter_gradients,
)
from gradviz.analysis.tables.passes import select_task
from tests.parity.pytorch_recordings import recorded

torch = pytest.importorskip("torch")
nn = torch.nn


def linear() -> Any:
    return nn.Linear(4, 4)


class Net(nn.Module):  # type: ignore[name-defined,misc]
    """A model of some parts, whose forward is a function of these and of an input."""

    def __init__(self, forward: Callable[..., Any], **parts: Any) -> None:
        super().__init__()
        self.compute = forward
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x: Any, *args: Any) -> Any:
        return self.compute(self, x, *args)


def parameters_of(program: Callable[[], Any]) -> ParameterGradients:
    trace = recorded(program).trace
    return find_parameter_gradients(trace, select_task(trace))


def reasons(found: ParameterGradients) -> dict[str, NoGradient | None]:
    """Return the reasons by the ends of first names, without the model's."""
    return {
        one.names[0].partition(".")[2]: one.missing and one.missing.reason
        for one in found.rows
        if one.names
    }


def reasons_in(net: Any, *args: Any) -> dict[str, NoGradient | None]:
    return reasons(parameters_of(lambda: _step(net, *args)))


def _step(net: Any, *args: Any) -> None:
    result = net(torch.ones(2, 4), *args)
    first = result[0] if isinstance(result, tuple) else result
    first.sum().backward()


def test_that_a_gradient_is_there_is_what_pytorch_says() -> None:
    net = Net(
        lambda self, x: self.c(self.b(self.a(x)).detach() + self.c(x)),
        a=linear(),
        b=linear(),
        c=linear(),
        d=linear(),
    )

    found = reasons_in(net)

    assert {name: why is None for name, why in found.items()} == {
        name: one.grad is not None for name, one in net.named_parameters()
    }


def test_a_frozen_backbone_is_frozen() -> None:
    net = Net(
        lambda self, x: self.head(self.body(x)),
        body=linear().requires_grad_(False),
        head=linear(),
    )

    assert reasons_in(net) == {
        "body.weight": NoGradient.FROZEN,
        "body.bias": NoGradient.FROZEN,
        "head.weight": None,
        "head.bias": None,
    }


def test_a_head_that_the_loss_does_not_use_is_named() -> None:
    net = Net(lambda self, x: (self.a(x), self.b(x)), a=linear(), b=linear())

    assert reasons_in(net)["b.weight"] is NoGradient.RESULT_NOT_USED


def test_a_branch_that_was_not_taken_was_not_called() -> None:
    net = Net(
        lambda self, x, both=False: self.b(self.a(x)) if both else self.a(x),
        a=linear(),
        b=linear(),
    )

    def program() -> None:
        _step(net, True)
        _step(net)

    (row,) = [one for one in parameters_of(program).rows if "b.weight" in one.names[0]]

    assert row.missing is not None
    assert row.missing.reason is NoGradient.MODULE_NOT_CALLED
    assert row.num_other_passes == 1


def muted(self: Any, x: Any) -> Any:
    with torch.no_grad():
        y = self.a(x)
    return self.b(y)


def test_a_part_under_no_grad_has_the_line_that_called_it() -> None:
    net = Net(muted, a=nn.Sequential(linear(), linear()), b=linear())
    found = parameters_of(lambda: _step(net))

    missing = [one.missing for one in found.rows if one.missing is not None]

    line = muted.__code__.co_firstlineno + 2
    assert len(missing) == 4
    assert {one.reason for one in missing} == {NoGradient.NO_GRAD}
    assert {one.location.rpartition(":")[2] for one in missing} == {str(line)}


@pytest.mark.parametrize(
    "cut",
    [
        lambda x: x.detach(),
        lambda x: x.data,
        lambda x: torch.tensor(x.tolist()),
        lambda x: x.argmax(-1),
    ],
)
def test_a_cut_inside_of_a_part_names_that_part(cut: Callable[..., Any]) -> None:
    inner = Net(lambda self, x: cut(self.layer(x)), layer=linear())
    net = Net(
        lambda self, x: self.head(x + self.inner(x).sum()), inner=inner, head=linear()
    )

    found = parameters_of(lambda: _step(net))
    (missing,) = [one.missing for one in found.rows if "layer.bias" in one.names[0]]

    assert missing is not None
    assert missing.reason is NoGradient.CUT_AFTER_MODULE
    assert (missing.inside or "").endswith(".inner")


def test_a_later_module_that_gets_only_integers_is_a_clue() -> None:
    net = Net(
        lambda self, x: self.table(self.layer(x).argmax(-1)),
        layer=linear(),
        table=nn.Embedding(4, 2),
    )

    found = parameters_of(lambda: _step(net))
    (missing,) = [one.missing for one in found.rows if "layer.bias" in one.names[0]]

    assert missing is not None
    assert [one.arguments for one in missing.clues] == ["integers"]


def test_a_parameter_that_its_module_does_not_use_is_told() -> None:
    net = Net(lambda self, x: self.a(x) * 2, a=linear(), b=nn.Parameter(torch.ones(1)))

    assert reasons_in(net)["b"] is NoGradient.NOT_USED


def test_tied_weights_are_one_parameter_that_was_used_twice() -> None:
    net = Net(lambda self, x: self.b(self.a(x)), a=linear(), b=linear())
    net.b.weight = net.a.weight

    rows = parameters_of(lambda: _step(net)).rows
    (tied,) = [one for one in rows if len(one.names) == 2]

    assert (tied.num_uses, tied.num_accumulated) == (2, 1)


def test_a_discriminator_that_is_frozen_by_turns_is_frozen_then() -> None:
    net = linear()

    def program() -> None:
        _step(net)
        net.requires_grad_(False)
        x = torch.ones(2, 4, requires_grad=True)
        net(x).sum().backward()

    assert reasons(parameters_of(program)) == dict.fromkeys(
        ("weight", "bias"), NoGradient.FROZEN
    )


def test_an_optimizer_of_another_model_is_noticed() -> None:
    trained, held = linear(), linear()
    optimizer = torch.optim.SGD([*held.parameters(), nn.Parameter(torch.ones(3))], 0.1)

    def program() -> None:
        _step(trained)
        optimizer.step()

    found = parameters_of(program)
    ((name, shape),) = found.strangers

    assert {one.optimizers for one in found.rows if one.has_gradient} == {()}
    assert {one.optimizers for one in found.rows if not one.has_gradient} == {(name,)}
    assert (name.partition("#")[0], shape) == ("SGD", "(3,)")


def test_a_reentrant_checkpoint_leaves_no_parameter_without_gradient() -> None:
    from torch.utils.checkpoint import checkpoint

    net = Net(
        lambda self, x: checkpoint(self.b, self.a(x), use_reentrant=True),
        a=linear(),
        b=linear(),
    )

    assert set(reasons_in(net).values()) == {None}


def test_a_mode_of_the_program_hears_nothing_of_it() -> None:
    heard = []

    class Mode(torch.overrides.TorchFunctionMode):  # type: ignore[name-defined,misc]
        def __torch_function__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            heard.append(function)
            return function(*args, **(kwargs or {}))

    def program() -> None:
        net = nn.Identity()
        with Mode():
            net(torch.ones(1))

    recorded(program)
    recorded_calls, heard[:] = list(heard), []
    program()

    assert recorded_calls == heard
