"""Graphs that pile up in a recorded program, which `gradviz check --advice` names."""

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gradviz as gv
from gradviz.analysis.findings.advice import build_advice
from gradviz.analysis.memory.finding import CostlyFinding
from gradviz.analysis.races.stream_order import stream_order
from gradviz.capture.session import Recording, record_program

torch = pytest.importorskip("torch")

NUM_STEPS = 7


pytestmark = [pytest.mark.parity, pytest.mark.usefixtures("no_other_thread")]


@pytest.fixture(autouse=True)
def nothing_else():
    gc.collect()
    yield
    gc.collect()


def train(keep: Callable[[Any, Any], object], lib: Any = torch) -> None:
    weight = lib.ones(100, requires_grad=True)
    for _ in range(NUM_STEPS):
        output = (weight * weight).sin()
        loss = output.sum()
        loss.backward()
        keep(loss, output)


def found_in(recording: Recording) -> list[CostlyFinding]:
    trace = recording.trace
    every = build_advice(trace, stream_order(trace)).findings
    # Other tests may have left graphs of theirs.
    return [
        one
        for one in every
        if one.rule == "graphs_pile_up" and Path(__file__).name in one.location
    ]


def of_program(program: Callable[[], None], path: Path) -> list[CostlyFinding]:
    recording = record_program(path)
    try:
        program()
    finally:
        recording.close()
    return found_in(recording)


def test_a_list_of_losses_of_a_function_that_is_over_is_found():
    def main() -> None:
        losses: list[Any] = []
        train(lambda loss, _: losses.append(loss))

    with gv.record(source="torch") as recording:
        main()

    (found,) = found_in(recording)
    assert found.name == "SumBackward0"
    assert found.times == NUM_STEPS - 1  # the last one had not been added yet
    assert found.location.endswith(f"test_pytorch_kept_graphs.py:{LINE_OF_LOSS}")
    assert "losses" in found.detail


def test_a_graph_that_is_kept_for_something_else_is_not_counted():
    def main() -> None:
        losses: list[Any] = []
        train(lambda loss, _: losses.append(loss))

    with gv.record(source="torch") as recording:
        other = torch.ones(2, requires_grad=True).exp().sum()
        other.backward()
        main()

    (found,) = found_in(recording)
    assert found.times == NUM_STEPS - 1
    assert other.grad_fn is not None


#: Where `train` makes its losses.
LINE_OF_LOSS = train.__code__.co_firstlineno + 4


@pytest.mark.parametrize("lib", [torch, gv])
def test_a_list_of_losses_that_is_there_at_the_end_is_found(lib, tmp_path):
    kept: list[Any] = []

    (found,) = of_program(
        lambda: train(lambda loss, _: kept.append(loss), lib), tmp_path / "list.gvt"
    )

    assert (found.name, found.times) == ("SumBackward0", NUM_STEPS)
    assert found.location.endswith(f"test_pytorch_kept_graphs.py:{LINE_OF_LOSS}")
    assert "kept[" in found.detail


@pytest.mark.parametrize("lib", [torch, gv])
def test_a_sum_of_losses_is_found_as_one_graph_of_all_steps(lib, tmp_path):
    kept: list[Any] = []

    def add(loss: Any, _: Any) -> None:
        kept[:] = [loss + kept[0] if kept else loss + 0]

    (found,) = of_program(lambda: train(add, lib), tmp_path / "sum.gvt")

    assert found.name == "AddBackward0"
    assert found.times >= NUM_STEPS - 2
    assert "kept[0]" in found.detail


def test_activations_that_a_hook_keeps_are_found_where_no_loss_is(tmp_path):
    kept: list[Any] = []

    (found,) = of_program(
        lambda: train(lambda _, output: kept.append(output)), tmp_path / "output.gvt"
    )

    assert found.name == "SinBackward0"


def test_losses_of_an_evaluation_that_no_pass_ran_are_told_with_their_bytes(tmp_path):
    weight, kept = torch.ones(100, requires_grad=True), []

    def program() -> None:
        train(lambda *_: None)
        kept.extend((weight * weight).exp().sum() for _ in range(6))

    (found,) = of_program(program, tmp_path / "evaluation.gvt")

    assert (found.name, found.times) == ("SumBackward0", 0)
    assert found.cost_bytes == 6 * 400  # what exp() has saved


def numbers(_: Any, loss: Any, output: Any) -> list[Any]:
    return [loss.item()]


def detached(kept: list[Any], loss: Any, output: Any) -> list[Any]:
    return [*kept, loss.detach()]


def the_last(_: Any, loss: Any, output: Any) -> list[Any]:
    return [loss, output]


@pytest.mark.parametrize("chosen", [numbers, detached, the_last])
def test_a_program_that_lets_go_of_its_graphs_hears_nothing(chosen, tmp_path):
    kept: list[Any] = []

    def keep(loss: Any, output: Any) -> None:
        kept[:] = chosen(kept, loss, output)

    assert of_program(lambda: train(keep), tmp_path / "fine.gvt") == []


def test_losses_of_one_step_that_are_run_one_by_one_are_no_pile(tmp_path):
    weight, kept = torch.ones(100, requires_grad=True), []

    def program() -> None:
        for _ in range(3):
            common = (weight * weight).sin()
            kept[:] = [(common * head).sum() for head in range(6)]
            for loss in kept:
                loss.backward(retain_graph=True)

    assert of_program(program, tmp_path / "heads.gvt") == []


def test_parameters_keep_their_names_where_graphs_are_looked_for():
    layer = torch.nn.Linear(3, 1)
    losses = []
    with gv.record(source="torch") as recording:
        for _ in range(NUM_STEPS):
            loss = layer(torch.ones(2, 3)).sum()
            loss.backward()
            losses.append(loss)

    trace = recording.trace
    names, _ = trace.nodes.names(
        trace.columns["gradient_accumulated"]["node"], "parameter"
    )
    assert {one.rpartition(".")[2] for one in names} == {"weight", "bias"}


def test_graphs_of_pytorch_are_listed_beside_those_of_gradviz():
    ours = gv.ones(3, requires_grad=True).tan().sum()
    theirs = torch.ones(3, requires_grad=True).tan().sum()

    texts = [str(one) for one in gv.live_graphs()]

    assert any("variable ours" in text for text in texts)
    assert any("variable theirs" in text for text in texts)
    del ours, theirs
