import json
import subprocess
import sys
import xml.etree.ElementTree as ET

import graphviz
import pytest

import gradviz as gv
from gradviz import nn
from gradviz.errors import UserError
from tests.analysis.reentrant import Inner


@pytest.fixture
def loss():
    x = gv.ones(3, requires_grad=True)
    x.name = "x"
    return (x.exp() * 2).sum()


def texts(svg: str | bytes) -> list[str]:
    return [one for one in ET.fromstring(svg).itertext() if one.strip()]


def test_a_notebook_is_shown_the_graph_in_the_order_predicted(loss) -> None:
    shown = texts(gv.draw(loss)._repr_svg_())

    assert "Backward graph" in shown
    assert "4 nodes · 3 edges · numbers: predicted order" in shown
    assert [one for one in shown if one.endswith("Backward0")] == [
        "SumBackward0",
        "MulBackward0",
        "ExpBackward0",
    ]
    assert "x (3,) · 3" in shown
    assert "did not run" not in shown


def test_saved_tensors_are_drawn_on_demand_in_the_box_of_their_node(loss):
    plain, more = (gv.draw(loss, show_saved=one) for one in (False, True))

    assert "saved tensor" not in texts(plain._repr_svg_())
    shown = texts(more._repr_svg_())
    assert "saved tensor" in shown
    assert "4 nodes · 3 edges · 1 saved tensor · numbers: predicted order" in shown
    assert "saved result (3,)" in shown
    assert "saved result (3,)" in more.digraph.source


@pytest.mark.parametrize("is_recorded", [False, True])
def test_of_a_big_graph_parts_are_drawn_unless_every_node_is_asked_for(is_recorded):
    layers = [nn.Sequential(nn.Linear(2, 2), nn.Tanh()) for _ in range(60)]
    loss = nn.Sequential(*layers)(gv.ones(1, 2)).sum()
    what = loss
    if is_recorded:
        with gv.record() as what:
            loss.backward()

    few, every = (gv.draw(what, collapse=one).graph for one in (True, False))

    assert few.num_nodes == every.num_nodes == len(every.nodes) == 301
    assert len(few.nodes) < 50
    assert few.notes


@pytest.mark.parametrize("suffix", ["svg", "dot", "png", "pdf"])
def test_the_suffix_is_the_format(suffix, loss, tmp_path) -> None:
    path = gv.draw(loss).save(tmp_path / f"loss.{suffix.upper()}")

    begin = {"svg": b"<?xml", "dot": b"digraph", "png": b"\x89PNG", "pdf": b"%PDF"}
    assert path.read_bytes().startswith(begin[suffix])


def test_a_file_is_replaced_as_a_whole(loss, tmp_path) -> None:
    (tmp_path / "loss.svg").write_text("old" * 100_000)

    gv.draw(loss).save(tmp_path / "loss.svg")

    assert ET.parse(tmp_path / "loss.svg")
    assert [one.name for one in tmp_path.iterdir()] == ["loss.svg"]


@pytest.mark.parametrize("name", ["loss", "loss.jpeg", "no/folder.svg"])
def test_a_path_that_cannot_be_written_is_one_line(name, loss, tmp_path) -> None:
    with pytest.raises(UserError) as refused:
        gv.draw(loss).save(tmp_path / name)

    assert "\n" not in str(refused.value)
    assert name.rpartition("/")[2] in str(refused.value)


def test_the_digraph_can_be_restyled(loss) -> None:
    picture = gv.draw(loss).digraph
    picture.attr(rankdir="LR")

    assert isinstance(picture, graphviz.Digraph)
    assert "rankdir=LR" in picture.source
    assert "rankdir" not in gv.draw(loss).digraph.source


def test_a_recording_is_shown_as_timeline_and_each_pass_as_graph(loss) -> None:
    with gv.record() as recording:
        assert recording._repr_svg_() is None  # it goes on
        loss.backward(retain_graph=True)
        (loss * 3).backward()
    first, second = recording.trace.tasks

    titles = texts(recording._repr_svg_())
    assert any(one.startswith("2 backward passes") for one in titles)
    assert gv.draw(recording).graph.task == second
    picture = gv.draw(recording, task=first)
    assert texts(picture._repr_svg_())[0].startswith(f"Backward pass {first}")
    assert gv.draw(recording.trace, task=first).graph == picture.graph


def test_a_recording_has_the_graph_of_each_of_its_passes(loss) -> None:
    with gv.record() as recording:
        loss.backward(retain_graph=True)
        (loss * 3).backward()

    first, second = recording.passes

    assert [one.about.task for one in (first, second)] == [*recording.trace.tasks]
    assert repr(first) == f"<Backward pass {first.about.task}: completed>"
    title = texts(first._repr_svg_())[0]
    assert title.startswith(f"Backward pass {first.about.task}")
    assert recording.graph().graph == second.graph().graph
    assert recording.graph(first.about.task).graph == first.graph().graph
    assert isinstance(recording.graph().digraph, graphviz.Digraph)


def test_the_graph_of_a_recorded_pass_holds_the_passes_that_it_called() -> None:
    with gv.record() as recording:
        Inner.apply(gv.ones(1, requires_grad=True)).sum().backward()

    for collapse in (True, False):
        nodes = recording.graph(collapse=collapse).graph.nodes
        assert [len(node.nested) for node in nodes] == [0, 1, 0]


def test_a_recording_without_a_pass_is_shown_as_text() -> None:
    with gv.record() as recording:
        pass

    assert recording._repr_svg_() is None
    assert recording.passes == ()
    with pytest.raises(UserError, match="no backward pass"):
        recording.graph()


def test_one_graph_shows_one_pass(loss) -> None:
    with gv.record() as recording:
        loss.backward(retain_graph=True)
        loss.backward()

    with pytest.raises(UserError, match="'all' means 2"):
        gv.draw(recording, task="all")


def test_a_recording_that_goes_on_is_refused(loss) -> None:
    with gv.record() as recording, pytest.raises(RuntimeError, match="goes on"):
        gv.draw(recording)


def test_a_recording_whose_file_is_gone_is_shown_as_text(loss, tmp_path) -> None:
    with gv.record(tmp_path / "gone.gvt") as recording:
        loss.backward()
    (tmp_path / "gone.gvt").unlink()

    assert recording._repr_svg_() is None


def test_the_drawing_module_is_not_loaded_with_the_api() -> None:
    module = "gradviz.render.graph.graph_picture"
    program = f"import sys, gradviz.api; print({module!r} in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout == "False\n"


@pytest.mark.stress  # a kernel takes seconds to start
def test_a_notebook_shows_graph_recording_and_pass(tmp_path) -> None:
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    cells = [
        "import gradviz as gv\nx = gv.ones(3, requires_grad=True)\nloss = x.exp()",
        "gv.draw(loss, params={'weights': x}, show_saved=True)",
        "with gv.record() as recording:\n    loss.sum().backward()\nrecording",
        "gv.draw(recording)",
        "recording.graph()",
        "recording.passes[0]",
        "recording.page()",
    ]
    notebook = nbformat.v4.new_notebook(
        cells=list(map(nbformat.v4.new_code_cell, cells))
    )
    kernels = tmp_path / "kernels" / "this"
    kernels.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": argv, "display_name": "this", "language": "python"}
    (kernels / "kernel.json").write_text(json.dumps(spec))
    env = {"JUPYTER_PATH": str(tmp_path), "IPYTHONDIR": str(tmp_path / "ipython")}

    with pytest.MonkeyPatch.context() as patch:
        for name, value in env.items():
            patch.setenv(name, value)
        nbclient.NotebookClient(notebook, kernel_name="this", timeout=120).execute()

    *pictures, page = notebook.cells[1:]
    graph, timeline, *one_pass = (
        texts(cell.outputs[0].data["image/svg+xml"]) for cell in pictures
    )
    assert page.outputs[0].data["text/html"].startswith("<iframe sandbox=")
    assert {"Backward graph", "weights (3,) · 1", "saved tensor"} <= {*graph}
    assert any("3 nodes · 1 thread" in one for one in timeline)
    assert len(one_pass) == 3
    assert all("Backward pass " in "".join(one) for one in one_pass)
    assert all("text/plain" in cell.outputs[0].data for cell in notebook.cells[1:])


def test_leaves_have_the_whole_names_that_params_give_them():
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 1)))
    loss = model(gv.ones(1, 2)).sum()

    shown = texts(gv.draw(loss, params=model.named_parameters())._repr_svg_())

    assert [one.partition(" ")[0] for one in shown if "weight (" in one] == [
        "1.0.weight",
        "0.weight",
    ]
