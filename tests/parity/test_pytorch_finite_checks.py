"""Checks for NaN and infinity in PyTorch's programs, and that these notice nothing."""

import copy
import math
from typing import Any

import pytest

import gradviz as gv
from gradviz.analysis.training.not_finite import not_finite_values
from gradviz.trace.events import HookCalled, NotFinite
from gradviz.trace.probe import Checked
from tests.parity.pytorch_recordings import faults, of_kind

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity


def found_in(program: Any, *, check_finite: bool = True) -> list[Any]:
    with gv.pytorch.record(check_finite=check_finite) as recording:
        program()
    assert faults(recording) == []
    return of_kind(recording, NotFinite)


def but_losses(found: list[Any]) -> list[tuple[Checked, bool, str]]:
    """Kind, NaN or not, and name."""
    return [
        (one.what, one.is_nan, one.name)
        for one in found
        if one.what is not Checked.LOSS
    ]


def leaf(*numbers: float, dtype: Any = torch.float32) -> Any:
    return torch.tensor(numbers, dtype=dtype, requires_grad=True)


# --- what is found --------------------------------------------------------------------


def test_nothing_is_found_where_all_is_finite() -> None:
    assert found_in(lambda: leaf(1, 2).exp().sum().backward()) == []


def test_the_function_that_makes_an_infinity_is_found_with_its_line() -> None:
    result, loss, gradient = found_in(lambda: (leaf(1, 0) * 4).log().sum().backward())

    assert (result.what, result.name, result.is_nan) == (Checked.RESULT, "log", False)
    assert result.location.startswith(__file__)
    assert (result.smallest, result.largest) == ("4.0", "4.0")
    assert (loss.what, loss.is_nan) == (Checked.LOSS, False)
    assert (gradient.what, gradient.name) == (Checked.GRADIENT, "LogBackward0")
    assert gradient.task == loss.task


def test_zero_by_zero_in_a_masked_mean_is_a_nan() -> None:
    def program() -> None:
        mask = torch.zeros(3)
        ((leaf(1, 2, 3) * mask).sum() / mask.sum()).backward()

    first = found_in(program)[0]

    assert (first.name, first.is_nan, first.given_infinity) == ("div", True, False)


def test_the_root_of_zero_is_found_in_a_double_backward() -> None:
    def program() -> None:
        x = leaf(0, 0)
        (grad,) = torch.autograd.grad((x * x).sum(), [x], create_graph=True)
        grad.square().sum().sqrt().backward()

    first, second = found_in(program)

    assert (first.name, first.is_nan) == ("SqrtBackward0", False)
    assert second.is_nan
    assert first.task == second.task


def test_masks_of_infinities_are_meant_and_a_row_of_nothing_else_is_not() -> None:
    def attention(*closed: bool) -> None:
        mask = torch.zeros(2, 2).masked_fill_(
            torch.tensor([closed, (False,) * 2]), -math.inf
        )
        (leaf(1, 2, 3, 4).view(2, 2) * 2 + mask).softmax(-1)[0, 0].backward()

    assert found_in(lambda: attention(False, True)) == []
    first = found_in(lambda: attention(True, True))[0]
    assert (first.name, first.is_nan, first.given_infinity) == ("softmax", True, True)


def test_numbers_of_sixteen_bits_overflow_in_place_too() -> None:
    def program() -> None:
        x = leaf(60_000, dtype=torch.float16) * 1
        x.mul_(1)
        x += x
        x.sum().backward()

    first = found_in(program)[0]

    assert (first.name, first.is_nan) in {("__iadd__", False), ("add_", False)}
    assert float(first.largest) == pytest.approx(60_000, rel=1e-3)


def test_a_sum_of_finite_gradients_may_overflow() -> None:
    def program() -> None:
        y = leaf(1, dtype=torch.float16) * 1
        given = [torch.tensor([40_000.0], dtype=torch.float16)] * 2
        torch.autograd.backward([y * 1, y * 1], given)

    assert but_losses(found_in(program)) == [(Checked.SUM, False, "MulBackward0")]


def test_a_training_that_overflows_tells_step_module_and_parameter() -> None:
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=1.0)
    with gv.pytorch.record(check_finite=True) as recording:
        for step in range(5):
            recording.step()
            optimizer.zero_grad()
            x = torch.full((2, 2), 3e38 if step == 3 else 0.01)
            (net(x) * 4).sum().backward()
            optimizer.step()

    values = not_finite_values(recording.trace)

    first, *others = values
    assert (first.what, first.step, first.value) == ("result", 3, "infinity")
    assert first.name in {"linear", "mul"}
    parameters = [one.name for one in others if one.what == "parameter"]
    assert parameters
    assert parameters[0].startswith("Sequential")
    gradients = [one for one in others if one.what == "gradient"]
    assert all(one.index is not None for one in gradients)


def test_a_module_is_named() -> None:
    class Root(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x.sqrt()

    net = torch.nn.Sequential(torch.nn.Identity(), Root())

    first = found_in(lambda: net(leaf(-1.0)).sum().backward())[0]

    assert first.name == "sqrt"
    assert first.module.endswith(".1")
    assert first.call >= 0


@pytest.mark.parametrize(("value", "is_nan"), [(math.inf, False), (math.nan, True)])
def test_without_the_option_the_loss_is_known(value: float, is_nan: bool) -> None:
    (one,) = found_in(lambda: (leaf(value) * 2).sum().backward(), check_finite=False)

    assert (one.what, one.is_nan) == (Checked.LOSS, is_nan)
    assert one.task >= 0


def test_a_nan_that_came_with_the_data_is_told_where_it_came_in() -> None:
    def program() -> None:
        x = torch.tensor([1.0, math.nan], requires_grad=True)
        (x * 2).exp().sum().backward()

    assert [one.name for one in found_in(program) if one.what is Checked.RESULT] in (
        [],
        ["tensor"],
    )


# --- what the program notices ---------------------------------------------------------


def trained(net: Any) -> list[Any]:
    torch.manual_seed(1)
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
    for _ in range(3):
        loss = net(torch.rand(8, 4)).logsumexp(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return [*(one.detach().clone() for one in net.parameters()), torch.rand(2)]


def model() -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(4, 4), torch.nn.Dropout(0.5), torch.nn.Linear(4, 2)
    )


def test_a_training_comes_out_the_same_to_the_bit() -> None:
    net = model()
    expected = trained(copy.deepcopy(net))

    found: list[Any] = []
    assert found_in(lambda: found.extend(trained(net))) == []

    assert all(map(torch.equal, expected, found))


def test_no_mode_and_no_hook_is_left() -> None:
    x = leaf(1, 2)
    y = x.exp()
    hooks: list[Any] = []

    def program() -> None:
        y.grad_fn.register_hook(lambda *_: hooks.append(None))
        y.sum().backward(retain_graph=True)

    with gv.pytorch.record(check_finite=True) as recording:
        program()
    y.sum().backward()

    assert torch.overrides._len_torch_function_stack() == 0
    assert len(hooks) == 2
    assert len(of_kind(recording, HookCalled)) == 1


def test_an_error_of_the_program_passes_by_without_our_frames() -> None:
    def program() -> None:
        with pytest.raises(RuntimeError) as info:
            leaf(1, 2) @ torch.ones(3)
        files = [str(one.path) for one in info.traceback]
        assert not any("watching" in one for one in files)

    assert found_in(program) == []


def test_modes_that_the_program_enters_and_leaves_are_its_own() -> None:
    class Counting(torch.overrides.TorchFunctionMode):
        calls = 0

        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            self.calls += 1
            return func(*args, **(kwargs or {}))

    with Counting() as mode:
        recording = gv.pytorch.record(check_finite=True)
        leaf(1).exp()
        recorded = mode.calls
    assert torch.overrides._len_torch_function_stack() == 1
    leaf(1).exp()
    recording.close()

    assert mode.calls == recorded
    assert torch.overrides._len_torch_function_stack() == 0


def test_the_device_of_all_tensors_may_be_set_meanwhile() -> None:
    try:
        with gv.pytorch.record(check_finite=True):
            torch.set_default_device("meta")
            assert torch.ones(2).device.type == "meta"
            torch.set_default_device("cpu")
        assert torch.ones(2).device.type == "cpu"
    finally:
        torch.set_default_device(None)


@pytest.mark.parametrize("transform", [torch.func.grad, torch.func.jacrev])
def test_values_inside_of_transforms_are_left_alone(transform: Any) -> None:
    expected = transform(lambda x: x.log().sum())(torch.zeros(2))

    found: list[Any] = []
    found_in(lambda: found.append(transform(lambda x: x.log().sum())(torch.zeros(2))))

    assert torch.equal(expected, found[0])


def test_vmap_and_fake_tensors_are_left_alone() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    def program() -> None:
        torch.func.vmap(lambda x: x.log())(torch.ones(2, 2))
        with FakeTensorMode():
            torch.ones(2).log()

    assert found_in(program) == []


def test_sparse_complex_and_empty_tensors_are_looked_at_or_left_alone() -> None:
    def program() -> None:
        torch.zeros(0).log()
        torch.eye(2).to_sparse()
        torch.ones(2, dtype=torch.complex64).exp()
        torch.arange(3) // 2

    assert found_in(program) == []
    assert found_in(lambda: torch.tensor([800 + 0j]).exp())[0].name == "exp"
    assert found_in(lambda: torch.zeros(2).log())[0].name == "log"


@pytest.mark.filterwarnings("ignore")
def test_the_compiler_breaks_no_graph_for_it() -> None:
    from torch._dynamo.testing import CompileCounter

    def compiled() -> tuple[int, int, list[Any]]:
        torch._dynamo.reset()
        counter = CompileCounter()
        result = trained(torch.compile(model(), backend=counter))
        return counter.frame_count, counter.op_count, result

    frames, ops, expected = compiled()
    found: list[Any] = []
    found_in(lambda: found.extend(compiled()))

    assert (found[0], found[1]) == (frames, ops)
    assert all(map(torch.equal, expected, found[2]))
