"""Pictures of models that people know, small ones, of gradviz's and of PyTorch's."""

import functools
import importlib
import re
from collections import Counter
from typing import NamedTuple

import pytest

import gradviz as gv
from gradviz.analysis.graphs.backward_graph import Graph, GraphNode
from gradviz.analysis.graphs.simplification import inner_nodes
from gradviz.render.graph.arrangement import Stacked, arranged
from gradviz.render.graph.chips import leaves_by_user
from gradviz.render.graph.detail import automatic
from gradviz.render.graph.graph_picture import render_graph
from gradviz.render.graph.graph_scene import Scene, build_scene
from gradviz.render.graph.graph_svg import svg
from gradviz.render.layout.placed_graph import BoxLayout, place
from tests.analysis.test_module_trees import graph_of
from tests.render.known_models import KNOWN_MODELS
from tests.render.svg_geometry import Drawing, faults, misses, read_drawing

TIMES = "\N{MULTIPLICATION SIGN}"
LIBRARIES = ["gradviz", "torch"]

#: What is folded in each model, as frames are labeled or boxes titled.
FOLDED = {
    "BERT": [f"encoder.layer.0-3 {TIMES}4"],
    "GPT-2": [f"h.0-3 {TIMES}4"],
    "T5": [f"block.0-3 {TIMES}4"] * 2,
    "deep names": [f"block.0-11.layer.0-2.attn {TIMES}35"],
    "ViT": [f"blocks.0-5 {TIMES}6"],
    "ResNet": [f"1-5 {TIMES}5", f"1-3 {TIMES}3"],
    "LSTM": [f"rnn {TIMES}48"],
    "RNN": [f"h2h {TIMES}48", f"i2h {TIMES}48", f"head {TIMES}48"],
}


class Picture(NamedTuple):
    """A default picture, and what it was made of."""

    graph: Graph
    scene: Scene
    drawing: Drawing

    @property
    def texts(self) -> list[str]:
        """Titles of boxes and labels of frames."""
        titles = [" ".join(box.title.split("\n")) for box in self.scene.boxes]
        return titles + [label for label, _ in self.drawing.labels]

    @property
    def nodes(self) -> list[GraphNode]:
        """Of each box, what it stands for."""
        leaves = leaves_by_user(self.graph).values()
        chips = {leaf for own in leaves for leaf in own}
        nodes = enumerate(self.graph.nodes)
        return [node for index, node in nodes if index not in chips]


@functools.cache
def picture(model: str, library: str) -> Picture:
    """The picture that `gv.draw` makes of a recording of a model's step."""
    if library == "torch":
        torch = pytest.importorskip("torch")
        torch.manual_seed(0)
        with gv.pytorch.record() as recording:
            KNOWN_MODELS[model](torch).loss.backward()
    else:
        gv.manual_seed(0)
        with gv.record() as recording:
            KNOWN_MODELS[model](importlib.import_module(library)).loss.backward()
    return drawn(gv.draw(recording.trace).graph)


def drawn(graph: Graph) -> Picture:
    def place_boxes(scene: Scene, order: Stacked) -> BoxLayout:
        return place(scene.sizes, scene.edges, scene.aside, order)

    scene, layout, _ = arranged(build_scene(graph), place_boxes)
    return Picture(graph, scene, read_drawing(svg(scene, layout)))


every_model = pytest.mark.parametrize("model", KNOWN_MODELS)
every_library = pytest.mark.parametrize("library", LIBRARIES)


@every_model
@every_library
def test_nothing_overlaps_is_cut_or_missing(model, library):
    one = picture(model, library)

    assert faults(one.drawing) == []
    assert misses(one.drawing, one.scene) == []
    assert len(one.drawing.edges) == len(one.scene.edges) + len(one.scene.carried)
    assert faults(read_drawing(render_graph(one.graph).data)) == []


@every_model
@every_library
def test_it_has_as_many_boxes_as_one_can_look_at(model, library):
    assert 5 <= len(inner_nodes(picture(model, library).graph)) <= 60


@pytest.mark.parametrize("model", FOLDED)
@every_library
def test_a_repeated_part_is_one_frame_or_box_that_leads_back_to_itself(model, library):
    one = picture(model, library)

    assert Counter(one.texts) >= Counter(FOLDED[model])
    assert one.scene.carried
    for _, consumer in one.scene.carried:
        assert "carries (" in one.scene.boxes[consumer].subtitle


@every_model
@every_library
def test_a_module_is_one_box_or_one_frame_or_says_which_of_its_calls(model, library):
    one = picture(model, library)
    shown = Counter(frame.module for frame in one.scene.frames if not frame.calls)
    shown.update(
        node.module
        for node, box in zip(one.nodes, one.scene.boxes, strict=True)
        if node.is_module and not re.match("call|part", box.subtitle)
    )

    assert {path: times for path, times in shown.items() if times > 1} == {}


@every_model
@every_library
def test_each_frame_is_drawn_and_holds_all_that_its_module_made(model, library):
    one = picture(model, library)

    assert len(one.drawing.frames) == len(build_scene(one.graph).frames)
    check_frames(one)


def check_frames(one: Picture) -> None:
    """Fail if a frame lacks a box of its module, or holds one of another."""
    for frame in one.scene.frames:
        own = {
            at
            for at, node in enumerate(one.nodes)
            if f"{node.module}.".startswith(f"{frame.module}.")
        }
        assert own.issuperset(frame.members)
        assert "of" in frame.calls or own == {*frame.members}


@every_model
@every_library
def test_names_leave_out_the_frames_around_them_and_keep_their_end(model, library):
    one = picture(model, library)
    roots = {frame.module.partition(".")[0] for frame in one.scene.frames}
    titles = [box.title for box in one.scene.boxes]

    # Of a module's own operations the first three are named.
    cut = [text for text in one.texts if "…" in text and ", …" not in text]
    assert cut == []
    assert [title for title in titles if title.split(".")[0] in roots] == []


def test_a_deep_projection_is_called_by_its_own_name():
    titles = [box.title for box in picture("deep names", "gradviz").scene.boxes]

    assert f"q_proj {TIMES}35" in titles


def test_a_recurrence_carries_what_its_cell_hands_to_the_next_step():
    scene = picture("LSTM", "gradviz").scene
    ways = {
        tuple(scene.boxes[end].title for end in way): scene.boxes[way[1]].subtitle
        for way in scene.carried
    }

    assert set(ways) == {
        (f"AddmmBackward0 {TIMES}48", f"MulBackward0 {TIMES}48"),  # hidden
        (f"MulBackward0 {TIMES}48", f"AddBackward0 {TIMES}48"),  # cell
    }
    assert all(subtitle.startswith("carries (1, 4)") for subtitle in ways.values())


@every_library
def test_a_module_that_is_called_twice_says_so(library):
    labels = [label for label, _ in picture("Siamese", library).drawing.labels]

    assert labels.count("encoder · 2 calls") == 1
    assert labels.count("6 · call 1 of 2") == labels.count("6 · call 2 of 2") == 1


def test_each_of_two_models_has_a_frame_of_its_own():
    frames = picture("GAN", "gradviz").scene.frames

    assert {frame.module.partition(".")[0] for frame in frames} == {
        "Generator",
        "Discriminator",
    }


@pytest.mark.parametrize("seed", range(12))
def test_pictures_of_random_trees_of_modules_have_nothing_wrong(seed):
    one = drawn(automatic(graph_of(seed)))

    assert faults(one.drawing) == []
    assert misses(one.drawing, one.scene) == []
    check_frames(one)


@pytest.mark.stress
@pytest.mark.parametrize("seed", range(12, 400))
def test_pictures_of_many_random_trees_have_nothing_wrong(seed):
    test_pictures_of_random_trees_of_modules_have_nothing_wrong(seed)
