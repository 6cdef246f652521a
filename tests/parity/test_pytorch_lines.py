"""The lines of the program that made PyTorch's nodes, and nothing else changed."""

import linecache
import threading
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import gradviz as gv
from gradviz.analysis.nodes.addresses import SeveralNodesError, find_node
from gradviz.trace import events as e
from tests.parity.pytorch_recordings import gradviz_run, leaf, of_kind, python, recorded

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity

THE_THREE = [
    "is_anomaly_enabled",
    "is_anomaly_check_nan_enabled",
    "set_anomaly_enabled",
]


def source(location: str) -> str:
    path, _, line = location.rpartition(":")
    return linecache.getline(path, int(line or 0)).strip()


def lines_of(recording: Any) -> dict[str, str]:
    """The source of the line that made each node, by name."""
    return {node.name: source(node.location) for node in recording.trace.nodes.values()}


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        del ctx
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        del ctx
        return grad * 2


# --- what has a line ------------------------------------------------------------------


def test_operators_functions_modules_and_custom_functions_have_the_programs_line():
    def program() -> None:
        a = leaf() * 2
        b = torch.nn.functional.softplus(a)
        c = Double.apply(b)
        d = torch.nn.Sequential(torch.nn.Sigmoid())(c)
        d.sum().backward()

    lines = lines_of(recorded(program))
    assert lines == {
        "AccumulateGrad": "a = leaf() * 2",
        "MulBackward0": "a = leaf() * 2",
        "SoftplusBackward0": "b = torch.nn.functional.softplus(a)",
        "DoubleBackward": "c = Double.apply(b)",
        "SigmoidBackward0": "d = torch.nn.Sequential(torch.nn.Sigmoid())(c)",
        "SumBackward0": "d.sum().backward()",
    }


def test_generated_code_has_the_line_of_its_caller():
    def program() -> None:
        traced = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Sigmoid()))
        compiled = torch.compile(torch.tanh, backend="aot_eager")
        a = traced(leaf())
        b = compiled(leaf())
        (a + b).sum().backward()

    lines = lines_of(recorded(program))
    assert lines["SigmoidBackward0"] == "a = traced(leaf())"
    assert lines["CompiledFunctionBackward"] == "b = compiled(leaf())"


def test_every_node_of_a_transformer_has_a_line():
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 2)

    recording = recorded(lambda: model(torch.ones(2, 3, 8)).sum().backward())

    assert len(recording.trace.nodes) > 100
    assert all(node.location for node in recording.trace.nodes.values())


def test_nodes_that_another_thread_made_have_its_lines():
    def program() -> None:
        losses: list[Any] = []
        thread = threading.Thread(target=lambda: losses.append(leaf().cos().sum()))
        thread.start()
        thread.join()
        (leaf().sin().sum() + losses[0]).backward()

    lines = lines_of(recorded(program))
    assert "leaf().cos()" in lines["CosBackward0"]
    assert "leaf().sin()" in lines["SinBackward0"]


def test_nodes_of_create_graph_have_the_line_of_the_call():
    def program() -> None:
        x = leaf()
        y = x.sin().sum()
        (grad,) = torch.autograd.grad(y, x, create_graph=True)
        grad.sum().backward()

    lines = lines_of(recorded(program))
    assert lines["CosBackward0"] == lines["MulBackward0"]
    assert "create_graph=True" in lines["CosBackward0"]
    assert "grad.sum()" in lines["SumBackward0"]


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_nodes_that_a_checkpoint_makes_again_have_lines(use_reentrant):
    def program() -> None:
        model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Tanh())
        out = torch.utils.checkpoint.checkpoint(
            model, leaf(2, 3), use_reentrant=use_reentrant
        )
        out.sum().backward()

    recording = recorded(program)
    nodes = [*recording.trace.nodes.values()]
    assert any(node.name == "TanhBackward0" for node in nodes)
    assert all(node.location for node in nodes)


def test_with_full_stacks_the_lines_that_led_there_are_kept_too():
    def inner(x: Any) -> Any:
        return torch.relu(x)

    with gv.pytorch.record(stacks="full") as recording:
        y = inner(leaf())
        y.sum().backward()

    names = {node.id: node.name for node in recording.trace.nodes.values()}
    stacks = {
        names[one.node]: [source(line) for line in one.stack.split(" < ")[:2]]
        for one in of_kind(recording, e.StackTaken)
    }
    assert stacks["ReluBackward0"] == ["return torch.relu(x)", "y = inner(leaf())"]
    assert lines_of(recording)["ReluBackward0"] == "return torch.relu(x)"


# --- the program's own line, after that of a library ----------------------------------

LIBRARY = """
def activation(x):
    return x.relu()
def model(x):
    x = activation(x)
    return x.sin()
"""


@pytest.fixture
def library(tmp_path: Path) -> tuple[str, Any]:
    """A library that somebody has installed: its path, and its functions."""
    path = tmp_path / "site-packages" / "layers.py"
    space: dict[str, Any] = {"__name__": "layers"}
    exec(compile(LIBRARY, path, "exec"), space)
    return str(path), SimpleNamespace(**space)


def test_a_node_of_a_library_has_the_programs_own_line_too(library):
    path, layers = library

    def program() -> None:
        hidden = layers.model(leaf())
        other = layers.model(hidden)
        other.sum().backward()

    trace = recorded(program).trace
    made = sorted((node.sequence_nr, node) for node in trace.nodes.values())[:4]
    lines = [node.location.split(" < ") for _, node in made]

    assert [one[0] for one in lines] == [f"{path}:{nr}" for nr in (3, 6, 3, 6)]
    assert [source(one[1]) for one in lines] == [
        *["hidden = layers.model(leaf())"] * 2,
        *["other = layers.model(hidden)"] * 2,
    ]
    assert lines_of(recorded(program))["SumBackward0"] == "other.sum().backward()"


def test_a_node_is_found_by_either_of_its_lines(library):
    _, layers = library
    trace = recorded(lambda: layers.model(leaf()).sum().backward()).trace
    (sine,) = [node for node in trace.nodes.values() if node.name == "SinBackward0"]
    (task,) = trace.tasks
    inner, own = sine.location.split(" < ")

    for address in (inner, "layers.py:6", sine.location):
        assert find_node(trace, task, address) == sine.id
    with pytest.raises(SeveralNodesError, match="4 nodes"):
        find_node(trace, task, own)


@pytest.mark.parametrize("stacks", ["leaf", "full"])
def test_full_stacks_change_nothing_about_the_two_lines(library, stacks):
    path, layers = library
    with gv.pytorch.record(stacks=stacks) as recording:
        layers.model(leaf()).sum().backward()

    nodes = {node.name: node for node in recording.trace.nodes.values()}
    inner, own = nodes["ReluBackward0"].location.split(" < ")
    assert (inner, source(own)) == (
        f"{path}:3",
        "layers.model(leaf()).sum().backward()",
    )
    stacks_of = [
        one.stack
        for one in of_kind(recording, e.StackTaken)
        if one.node == nodes["ReluBackward0"].id
    ]
    if stacks == "leaf":
        assert not stacks_of
    else:
        assert stacks_of[0].startswith(f"{path}:3 < {path}:5 < {own} < ")


def test_nodes_keep_their_two_lines_in_a_program_that_uses_anomaly_mode(library):
    path, layers = library

    def program() -> None:
        with torch.autograd.detect_anomaly():
            layers.activation(leaf()).sum().backward()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nodes = recorded(program).trace.nodes.values()
    (relu,) = [node.location for node in nodes if node.name == "ReluBackward0"]
    assert relu.startswith(f"{path}:3 < {__file__}:")


def test_a_pass_that_a_library_calls_has_two_lines_and_so_has_gradvizs_own(library):
    path, _ = library
    space: dict[str, Any] = {"__name__": "trainers"}
    exec(compile("def fit(loss):\n    loss.backward()", path, "exec"), space)

    def own() -> None:
        space["fit"](gv.ones(3, requires_grad=True).sum())

    def pytorchs() -> None:
        space["fit"](leaf().sum())

    for program in (own, pytorchs):
        (begun,) = of_kind(recorded(program), e.TaskBegun)
        inner, caller = begun.location.split(" < ")
        assert (inner, source(caller)) == (
            f"{path}:2",
            linecache.getline(__file__, program.__code__.co_firstlineno + 1).strip(),
        )


def test_without_stacks_nothing_is_replaced_and_no_functional_call_has_a_line():
    before = [getattr(torch, name) for name in THE_THREE]
    with gv.pytorch.record(stacks="none") as recording:
        assert [getattr(torch, name) for name in THE_THREE] == before
        leaf().sin().sum().backward()

    assert {node.location for node in recording.trace.nodes.values()} == {""}


# --- what the program notices ---------------------------------------------------------


def test_anomaly_mode_is_what_the_program_wants():
    before = [getattr(torch, name) for name in THE_THREE]

    def state() -> tuple[bool, bool]:
        return torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with gv.pytorch.record():
            assert state() == (False, True)
            with torch.autograd.detect_anomaly(check_nan=False):
                assert state() == (True, False)
                (node,) = [leaf().sin().grad_fn]
                assert "leaf().sin()" in "".join(node.metadata["traceback_"])
            assert state() == (False, True)
            torch.autograd.set_detect_anomaly(True)
        assert state()[0]
        torch.autograd.set_detect_anomaly(False)
    assert [getattr(torch, name) for name in THE_THREE] == before
    assert leaf().sin().grad_fn.metadata == {}


def test_it_may_be_on_before_the_recording_begins_and_after():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.autograd.detect_anomaly():
            recorded(lambda: leaf().sin().sum().backward())
            assert torch.is_anomaly_enabled()
            assert torch.is_anomaly_check_nan_enabled()
    assert not torch.is_anomaly_enabled()


def test_a_recording_without_lines_does_not_bring_back_what_was_wanted_earlier():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.autograd.detect_anomaly():
            recorded(lambda: leaf().sin().sum().backward())
    try:
        with gv.pytorch.record(stacks="none"):
            assert not torch.is_anomaly_enabled()
            leaf().sin().sum().backward()
        assert not torch.is_anomaly_enabled()
    finally:
        torch.autograd.set_detect_anomaly(False)


FAILING = """
    import sys, torch
    torch.manual_seed(0)

    class Refuse(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2
        @staticmethod
        def backward(ctx, grad):
            raise ValueError("no")

    x = torch.ones(3, requires_grad=True)
    for make in (
        lambda: Refuse.apply(x).sum(),
        lambda: (lambda y: (y.exp_(), y.sin(), y.mul_(2))[1].sum())(x * 1),
    ):
        loss = make()
        try:
            loss.backward()
        except Exception as error:
            print(type(error), error)
    print(torch.is_anomaly_enabled(), "traceback_" in loss.grad_fn.metadata)
    with torch.autograd.set_detect_anomaly(True):
        loss = Refuse.apply(x.sin()).sum()
        loss.backward()
"""


def test_errors_hints_and_warnings_are_the_same_with_and_without_a_recording(tmp_path):
    plain = python(tmp_path, FAILING)
    watched = gradviz_run(tmp_path, FAILING)

    assert "Hint: enable anomaly detection" in plain.output
    assert "Traceback of forward call" in plain.errors
    assert watched.output == plain.output
    assert watched.errors == plain.errors
    assert watched.exit_code == plain.exit_code


def test_nodes_keep_no_line_of_ours_once_a_pass_has_read_them():
    with gv.pytorch.record():
        y = leaf().sin()
        y.sum().backward(retain_graph=True)
        assert "traceback_" not in y.grad_fn.metadata
