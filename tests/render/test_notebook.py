import gradviz as gv
from gradviz.analysis.graph import build_graph
from gradviz.render.graph import render_graph
from gradviz.render.notebook import graphviz_source


def test_a_source_of_the_graphviz_package_holds_our_dot_text():
    with gv.record() as recording:
        x = gv.tensor([1.0, 2.0], requires_grad=True)
        (x * x).sum().backward()
    graph = build_graph(recording.trace, recording.trace.tasks[0])

    source = graphviz_source(graph, colour_by="time")

    expected = render_graph(graph, format="dot", colour_by="time").data.decode()
    assert source.source == expected
