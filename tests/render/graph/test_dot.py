import re

import pytest
from graphviz.quoting import quote

from gradviz.render.graph.dot import LEFT, digraph, label, parse_plain, skeleton
from gradviz.render.graph.graph_scene import build_scene

#: A DOT string, then anything that is none.
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[^"]+', re.DOTALL)


def without_strings(source):
    tokens = TOKEN.findall(source)
    assert "".join(tokens) == source
    return "".join('""' if token[0] == '"' else token for token in tokens)


def test_nodes_have_our_own_names_and_are_numbered(step):
    source = digraph(build_scene(step)).source

    assert 'label="0  MulBackward0\\n(32, 10) · main.py:7\\n"' in source
    assert "n0 -> n1" in source
    assert 'label="1  MulBackward0\\n(32, 10) · main.py:7\\nAccumulateGrad' in source
    assert source.count(" -> ") == 5  # those to leaves are none


def test_hostile_names_stay_inside_their_strings(hostile_graph, step):
    source = without_strings(digraph(build_scene(hostile_graph)).source)

    assert re.findall(r"n\d+ \[", source) == ["n0 [", "n1 [", "n2 ["]
    for attribute in ("image", "URL", "href", "stylesheet", "shapefile"):
        assert attribute not in source


def test_no_hostile_text_reaches_the_layout(hostile_graph):
    source = skeleton(build_scene(hostile_graph)).source

    assert set(re.findall(r'"(.*?)"', source)) == {""}
    assert set(re.findall(r"[^\W\d]\w*", source)) == {
        *("digraph", "graph", "nodesep", "ranksep", "node", "shape", "box", "label"),
        *("fixedsize", "true", "edge", "arrowhead", "none", "n0", "n1", "n2"),
        *("width", "height", "weight"),
    }


@pytest.mark.parametrize(
    ("line", "string"),
    [
        ("plain", r'"plain\n"'),
        ('say "hi"', r'"say \"hi\"\n"'),
        ("back\\slash", r'"back\\slash\n"'),
        ("ends\\", r'"ends\\\n"'),
        ('\\"', r'"\\\"\n"'),
        ("<b>html</b>", r'"<b>html</b>\n"'),
        ("node", r'"node\n"'),
        ("&lt;", r'"&amp;lt;\n"'),
        ("", '""'),
    ],
)
def test_a_label_is_text_whatever_it_holds(line, string):
    assert quote(label(line)) == string


def test_each_line_of_a_label_has_its_end_but_empty_ones():
    assert label('"a', "", '"b', end=LEFT) == '"a\\l"b\\l'
    assert quote(label('"a', "", '"b', end=LEFT)) == r'"\"a\l\"b\l"'


def test_the_output_of_dot_becomes_a_layout(make_graph):
    scene = build_scene(make_graph(2, [(0, 1)]))
    plain = (
        "graph 1 2 3\n"
        'node n0 1 2.5 1 0.5 "" solid box black lightgrey\n'
        'node n1 1 0.5 1 0.5 "" solid box black lightgrey\n'
        "edge n0 n1 4 1 2.25 1 2 1 1 1 0.75 solid black\n"
        "stop\n"
    )

    layout = parse_plain(plain, scene)

    assert layout.centers == ((72, 36), (72, 180))
    assert layout.routes == (((72, 54), (72, 72), (72, 144), (72, 162)),)
    assert (layout.width, layout.height) == (144, 216)


@pytest.mark.parametrize("plain", ["", "graph 1 2 3\nnode n0 1 2 1 1\nstop\n"])
def test_a_layout_that_lacks_something_is_refused(plain, make_graph):
    with pytest.raises(ValueError, match="lacks"):
        parse_plain(plain, build_scene(make_graph(2, [(0, 1)])))
