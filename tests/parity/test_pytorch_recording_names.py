"""Names of PyTorch's nodes and parameters within their models."""

import copy
import gc
import threading
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import gradviz as gv
from tests.parity.pytorch_recordings import leaf, recorded

torch = pytest.importorskip("torch")
nn = torch.nn

pytestmark = pytest.mark.parity


def names(program: Callable[[], Any]) -> set[str]:
    """The names of all parameters that passes reach, without the model's number."""
    nodes = recorded(program).trace.nodes.values()
    return {name.partition(".")[2] for node in nodes for name in node.parameters}


def modules(program: Callable[[], Any]) -> dict[str, str]:
    """The module of each node that is no leaf's, without the model's number."""
    nodes = recorded(program).trace.nodes.values()
    return {
        node.name.removesuffix("Backward0"): node.module.partition(".")[2]
        for node in nodes
        if node.name != "AccumulateGrad"
    }


def own_names(model: Any) -> set[str]:
    return {name for name, _ in model.named_parameters()}


class Kernel(nn.Module):
    """Module that is called past PyTorch's hooks, as modules of GPyTorch are."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(2))

    def __call__(self, x: Any) -> Any:
        return x * self.scale


class Process(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mean = nn.Parameter(torch.ones(2))
        self.kernel = Kernel()
        self.others = nn.ModuleList([Kernel(), nn.Sequential(Kernel())])

    def __call__(self, x: Any) -> Any:
        return self.forward(x)

    def forward(self, x: Any) -> Any:
        x = self.kernel(x) + self.mean
        return self.others[1][0](self.others[0](x)).sum()


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
        self.shift = nn.Parameter(torch.ones(2))

    def encode(self, x: Any) -> Any:
        return self.layers(x) + self.shift


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # TorchScript reads the types
        return self.fc(x).tanh()


@pytest.mark.parametrize("is_made_before", [True, False])
@pytest.mark.parametrize(
    ("make", "call"),
    [
        (Process, lambda model: model(torch.ones(2))),
        (Encoder, lambda model: model.encode(torch.ones(2)).sum()),
        (lambda: copy.deepcopy(Process()), lambda model: model(torch.ones(2))),
        (lambda: nn.ParameterList([torch.ones(2)]), lambda one: one[0].sum()),
        (
            lambda: nn.ModuleList([Process()])[0],
            lambda model: model(torch.ones(2)),
        ),
    ],
    ids=["__call__", "method", "copy", "list", "in a list"],
)
def test_parameters_have_names_though_their_model_is_not_called(
    make, call, is_made_before
):
    made = [make()] if is_made_before else []

    def program() -> None:
        if not made:
            made.append(make())
        call(made[0]).backward()

    found = names(program)
    assert found == own_names(made[0])


def test_parts_that_a_method_calls_are_parts_of_its_model():
    def program() -> None:
        Encoder().encode(torch.ones(2)).sum().backward()

    found = modules(program)
    assert (found["Addmm"], found["Tanh"], found["Add"]) == ("layers.0", "layers.1", "")


def test_a_model_that_is_called_is_named_by_its_class_and_so_are_two():
    def program() -> None:
        first, second = Process(), Process()
        (first(torch.ones(2)) + second(torch.ones(2))).backward()

    nodes = recorded(program).trace.nodes.values()
    found = {name.partition(".")[0] for node in nodes for name in node.parameters}
    assert len(found) == 2
    assert all(name.startswith("Process") for name in found)


def test_other_parameters_that_a_call_is_given_have_the_names_of_its_own():
    net = Net()

    def program() -> None:
        for _ in range(2):
            other = {
                name: one.detach().clone().requires_grad_()
                for name, one in net.named_parameters()
            }
            out = torch.func.functional_call(net, other, torch.ones(2))
            out.sum().backward()

    nodes = recorded(program).trace.nodes.values()
    found = [node.parameters for node in nodes if node.name == "AccumulateGrad"]
    assert len(found) == 4
    assert {name.partition(".")[2] for (name,) in found} == own_names(net)


@pytest.mark.parametrize(
    "compile_", [torch.jit.script, lambda net: torch.jit.trace(net, torch.ones(2))]
)
def test_models_of_torchscript_are_called_by_their_class(compile_):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TorchScript is deprecated
        net = compile_(Net())

    nodes = recorded(lambda: net(torch.ones(2)).sum().backward()).trace.nodes.values()
    found = {name for node in nodes for name in node.parameters}
    assert {name.partition(".")[2] for name in found} == {"fc.weight", "fc.bias"}
    assert all(name.startswith("Net") for name in found)


def test_leaves_that_are_nobodys_have_no_name():
    alone = nn.Parameter(torch.ones(2))
    with gv.pytorch.record() as recording:
        (alone * leaf(2)).sum().backward()
        (alone * leaf(2)).sum().backward()

    nodes = recording.trace.nodes.values()
    assert {node.parameters for node in nodes} == {()}


def test_names_keep_neither_models_nor_parameters_alive():
    with gv.pytorch.record():
        model = Process()
        model(torch.ones(2)).backward()
        gone = [weakref.ref(model), weakref.ref(model.mean)]
        del model
        gc.collect()
        assert [one() for one in gone] == [None, None]


def test_a_model_whose_methods_fail_harms_nothing():
    class Odd(Process):
        def named_parameters(self, *args: Any, **options: Any) -> Any:
            raise ValueError("mine")

        def modules(self) -> Any:
            raise ValueError("mine")

    assert names(lambda: Odd()(torch.ones(2)).backward()) == set()


# --- hooks of modules -----------------------------------------------------------------


class Outer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(2, 2)

    def forward(self, x: Any) -> Any:
        return self.inner(x).exp()


def test_nodes_of_a_modules_hooks_are_its_own():
    outer = Outer()
    outer.inner.register_forward_pre_hook(lambda module, args: (args[0].cos(),))
    outer.inner.register_forward_hook(lambda module, args, out: out.sin())
    outer.register_forward_hook(lambda module, args, out: out.tanh())
    hooks = [dict(one._forward_hooks) for one in (outer, outer.inner)]

    found = modules(lambda: outer(leaf(2)).sum().backward())
    assert {name: found[name] for name in ("Cos", "Addmm", "Sin", "Exp", "Tanh")} == {
        "Cos": "inner",
        "Addmm": "inner",
        "Sin": "inner",
        "Exp": "",
        "Tanh": "",
    }
    assert [dict(one._forward_hooks) for one in (outer, outer.inner)] == hooks


@pytest.mark.parametrize("has_forward_hook", [True, False])
@pytest.mark.parametrize("kind", ["full_backward_hook", "full_backward_pre_hook"])
def test_nodes_of_full_backward_hooks_belong_to_their_module(kind, has_forward_hook):
    outer = Outer()
    if has_forward_hook:
        outer.inner.register_forward_hook(lambda module, args, out: out.sin())
    getattr(outer.inner, f"register_{kind}")(lambda *args: None)

    recording = recorded(lambda: outer(leaf(2)).sum().backward())
    nodes = recording.trace.nodes.values()
    found = [
        node.module.partition(".")[2]
        for node in nodes
        if node.name in {"BackwardHookFunctionBackward", "ExpBackward0"}
    ]
    assert found.count("inner") == len(found) - 1 >= 1


def test_a_hooked_module_without_a_hook_node_claims_no_node_of_its_caller():
    inner = nn.Linear(2, 2)
    inner.register_full_backward_hook(lambda *args: None)

    def program() -> None:
        with torch.no_grad():
            inner(torch.ones(2))
        leaf(2).exp().sum().backward()

    nodes = recorded(program).trace.nodes.values()
    assert {node.module for node in nodes} == {""}


def failing(error: BaseException) -> Any:
    outer = Outer()

    def raises(*args: Any) -> None:
        raise error

    outer.inner.register_forward_hook(raises)
    return outer


def test_a_hook_that_raises_leaves_nothing_behind():
    outer = failing(ValueError("mine"))

    def program() -> None:
        with pytest.raises(ValueError, match="mine"):
            outer(leaf(2))
        leaf(2).exp().sum().backward()

    nodes = recorded(program).trace.nodes.values()
    assert {node.module for node in nodes} == {""}
    assert len(outer.inner._forward_hooks) == 1


def test_an_interrupt_of_which_no_hook_hears_leaves_no_hook_behind():
    outer = failing(KeyboardInterrupt())

    def program() -> None:
        with pytest.raises(KeyboardInterrupt):
            outer(leaf(2))

    with (
        gv.pytorch.record()
    ):  # of another thread, for what it was inside of stays known
        thread = threading.Thread(target=program)
        thread.start()
        thread.join()
    assert len(outer.inner._forward_hooks) == 1


def test_in_anomaly_mode_nodes_of_a_backward_have_the_programs_line():
    def program() -> None:
        with torch.autograd.detect_anomaly(check_nan=False):
            x = leaf(2)
            (first,) = torch.autograd.grad((x * x).sum(), x, create_graph=True)
            first.sum().backward()

    with pytest.warns(UserWarning, match="Anomaly"):
        recording = recorded(program)
    nodes = [one for one in recording.trace.nodes.values() if one.location]
    assert len(nodes) > 4
    assert {node.location.rpartition(":")[0] for node in nodes} == {__file__}


def parameters(program: Callable[[], Any]) -> dict[str, tuple[Any, bool]]:
    """Return the parameters of all models that are defined, without model numbers."""
    return {
        name.partition(".")[2]: (one.shape, one.requires_grad)
        for model in recorded(program).trace.models.values()
        for one in model.parameters
        for name in one.names
    }


class Two(nn.Module):
    """Two layers, of which only the first runs."""

    def __init__(self) -> None:
        super().__init__()
        self.used = nn.Linear(2, 2, bias=False)
        self.unused = nn.Linear(2, 3, bias=False)

    def forward(self, x: Any) -> Any:
        return self.used(x)


def test_parameters_that_no_pass_reaches_are_listed() -> None:
    net = Two()
    net.unused.requires_grad_(False)

    def program() -> None:
        for _ in range(2):
            net(leaf(1, 2)).sum().backward()

    expected = {"used.weight": ((2, 2), True), "unused.weight": ((3, 2), False)}
    assert parameters(program) == expected
    assert parameters(program) == expected  # in the next recording too


def test_parameters_that_a_model_gets_later_are_listed_even_if_they_do_not_run() -> (
    None
):
    net = Two()

    def program() -> None:
        net(leaf(1, 2)).sum().backward()
        net.used.extra = nn.Parameter(torch.ones(3))
        net(leaf(1, 2)).sum().backward()

    assert parameters(program).keys() == own_names(net)
    assert "used.extra" in own_names(net)


def test_parameters_of_a_model_that_is_called_past_the_hooks_are_listed() -> None:
    process = Process()

    assert parameters(lambda: process(leaf(2)).backward()).keys() == own_names(process)


def test_parameters_of_a_model_that_only_an_optimizer_knows_are_listed() -> None:
    other = Two()
    optimizer = torch.optim.SGD(other.parameters(), 0.1)

    def program() -> None:
        leaf(2).sum().backward()
        optimizer.step()

    assert parameters(program).keys() == own_names(other)
    assert parameters(program).keys() == own_names(other)  # the next recording too


def test_lazy_and_shared_parameters_are_listed() -> None:
    net = nn.Sequential(nn.Linear(2, 2, bias=False))
    net.never = nn.LazyLinear(2, bias=False)
    net.same = net[0]
    found = parameters(lambda: net[0](leaf(1, 2)).sum().backward() or net[0])

    assert found == {
        "0.weight": ((2, 2), True),
        "same.weight": ((2, 2), True),
        "never.weight": (None, True),
    }
