"""Models of public libraries, recorded: nothing changes, and nothing is missing."""

import functools
import linecache
import os
import re
from pathlib import Path
from typing import Any

import pytest

import gradviz as gv
from gradviz.analysis.graphs.backward_graph import LEAF, Graph, build_graph
from gradviz.analysis.graphs.overview import overview
from gradviz.analysis.graphs.simplification import inner_nodes
from gradviz.analysis.memory.allocations import HoldingKind, holdings
from gradviz.capture.session import Recording
from gradviz.pytorch.nodes.graph_reader import ID_KEY
from gradviz.trace import events as e
from tests.parity.pytorch_recordings import faults, of_kind, recorded
from tests.torch_models import language_models, training_loops, vision_models
from tests.torch_models.oracles import (
    hearing_modules,
    hearing_nodes,
    hearing_saved_tensors,
)
from tests.torch_models.programs import Program, Training

torch = pytest.importorskip("torch")

PROGRAMS = [
    *language_models.PROGRAMS,
    *vision_models.PROGRAMS,
    *training_loops.PROGRAMS,
]

pytestmark = [pytest.mark.torch_models, pytest.mark.filterwarnings("ignore")]
each_program = pytest.mark.parametrize("program", PROGRAMS, ids=str)
each_saving_in_nodes = pytest.mark.parametrize(
    "program",
    [one for one in PROGRAMS if one.num_steps == 1 and not one.keeps_inputs],
    ids=str,
)

#: Not even one node in a hundred may lack its line.
MIN_LINES = 0.99


@functools.cache
def run(program: Program) -> tuple[Training, Recording, list[Any]]:
    """Run a program recorded, once for all tests."""
    training = program.start()
    losses: list[Any] = []
    recording = recorded(lambda: losses.extend(training.run()))
    return training, recording, losses


def gradients(training: Training) -> dict[str, Any]:
    parameters = dict(training.model.named_parameters()).items()
    return {name: one.grad for name, one in parameters if one.grad is not None}


def unnumbered(path: str) -> str:
    """Return a path without the number of its model, if several are called the same."""
    return re.sub(r"#[0-9]+", "", path)


def is_trained(parameter: Any, program: Program) -> bool:
    """Tell if a parameter gets gradients; loops may have dropped those that it got."""
    has_gradient = parameter.grad is not None or program.num_steps > 1
    return parameter.requires_grad and has_gradient


def assert_equal_bits(these: Any, those: Any) -> None:
    torch.testing.assert_close(these, those, rtol=0, atol=0, equal_nan=True)


def last_graph(recording: Recording) -> Graph:
    return build_graph(recording.trace, [*recording.trace.tasks][-1])


def held(recording: Recording, kind: HoldingKind) -> int:
    found = holdings(recording.trace)
    return int(found.size_bytes[found.kind == kind].sum())


@each_program
def test_losses_gradients_and_weights_are_the_same_recorded_or_not(program):
    unrecorded = program.start()
    expected = unrecorded.run()

    recorded_one, _, losses = run(program)

    assert len(losses) == program.num_steps
    assert_equal_bits(losses, expected)
    assert_equal_bits(gradients(recorded_one), gradients(unrecorded))
    weights = dict(recorded_one.model.state_dict())
    assert_equal_bits(weights, dict(unrecorded.model.state_dict()))


@each_program
def test_nodes_ran_in_the_order_in_which_hooks_on_all_of_them_hear_them(
    program, monkeypatch
):
    training = program.start()

    with hearing_nodes(monkeypatch) as heard:
        recording = recorded(training.run)

    started = of_kind(recording, e.NodeStarted)
    assert [one.node for one in started if not one.inferred] == heard
    assert {*heard} == {*recording.trace.nodes}


@each_program
def test_nearly_every_node_has_the_line_of_a_file_outside_of_pytorch(program):
    _, recording, _ = run(program)
    nodes = [*recording.trace.nodes.values()]
    pytorch = f"{Path(torch.__file__).parent}{os.sep}"

    made_at = [node.location.split(" < ") for node in nodes if node.location]

    assert len(made_at) >= MIN_LINES * len(nodes)
    for path, _, line in {one.rpartition(":") for lines in made_at for one in lines}:
        assert not path.startswith(pytorch)
        assert linecache.getline(path, int(line)).strip()


@each_program
def test_nearly_every_node_has_a_line_of_the_programs_own(program):
    _, recording, _ = run(program)
    nodes = [*recording.trace.nodes.values()]
    ours = f"{Path(__file__).parent}{os.sep}"

    own = [node for node in nodes if node.location.split(" < ")[-1].startswith(ours)]

    assert len(own) >= MIN_LINES * len(nodes)


@each_program
def test_nodes_have_the_module_that_returned_what_they_made(program):
    training = program.start()
    with hearing_modules(training.model) as made:
        recording = recorded(training.run)

    nodes = recording.trace.nodes
    told = {node.metadata.get(ID_KEY): path for node, path in made.items() if path}
    found = [
        (unnumbered(nodes[one].module), path)
        for one, path in told.items()
        if one in nodes
    ]
    assert len(found) > 1
    assert [path for path, _ in found] == [path for _, path in found]


@each_program
def test_leaves_are_called_as_the_library_calls_its_parameters(program):
    training, recording, _ = run(program)
    name = type(training.model).__name__
    parameters = training.model.named_parameters(remove_duplicate=False)
    expected = {
        f"{name}.{path}" for path, one in parameters if is_trained(one, program)
    }

    leaves = [node for node in last_graph(recording).nodes if node.name == LEAF]

    assert all(leaf.parameters for leaf in leaves)
    assert {unnumbered(one) for leaf in leaves for one in leaf.parameters} == expected


@each_saving_in_nodes
def test_saved_bytes_are_those_that_hooks_of_the_program_hear(program):
    training = program.start()
    held_anyway = [*training.model.parameters(), *training.model.buffers()]
    with hearing_saved_tensors(held_anyway) as sizes:
        training.run()

    trained, recording, _ = run(program)

    assert held(recording, HoldingKind.SAVED) == sum(sizes.values())
    expected = sum(gradient.nbytes for gradient in gradients(trained).values())
    assert held(recording, HoldingKind.GRADIENT) == expected


@each_program
def test_nothing_in_the_trace_contradicts_the_rules_of_the_engine(program):
    _, recording, _ = run(program)

    assert not faults(recording)
    begun = of_kind(recording, e.TaskBegun)
    assert len(begun) == program.num_steps


@each_program
def test_the_overview_has_5_to_60_boxes_with_layers_that_repeat_drawn_once(program):
    _, recording, _ = run(program)

    drawn = overview(last_graph(recording))

    assert 5 <= len(inner_nodes(drawn)) <= 60
    if program.has_layers:
        assert max(node.repeats for node in drawn.nodes) >= 3


@each_program
def test_the_picture_is_drawn(program, tmp_path):
    _, recording, _ = run(program)

    gv.draw(recording).save(tmp_path / "picture.svg")

    assert "</svg>" in (tmp_path / "picture.svg").read_text()
