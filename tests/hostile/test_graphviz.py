"""Graphviz's view of hostile texts: labels, and nothing else."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from gradviz.cli.main import gradviz
from gradviz.render.graph import graphviz
from tests.hostile.markup import active_parts, structure

pytestmark = pytest.mark.skipif(
    not graphviz.is_available(), reason="Graphviz is not here"
)

#: Attributes by which a graph loads files, leads elsewhere or has markup drawn.
FORBIDDEN = {"image", "shapefile", "fontpath", "imagepath", "stylesheet", "URL", "href"}


def drawn(path: Path, suffix: str) -> bytes:
    output = path.with_suffix(suffix)
    words = ["render", "graph", "-f", "-o", str(output), str(path)]
    done = CliRunner().invoke(gradviz, words)
    assert done.exit_code == 0, done.stderr
    return output.read_bytes()


def told(path: Path, format_: str) -> bytes:
    """Return Graphviz's output for the DOT text of a trace."""
    return graphviz.run(drawn(path, ".dot").decode(), format_, timeout_s=60)


def attributes(graph: object) -> set[str]:
    """The names of all attributes in what Graphviz writes as JSON."""
    if isinstance(graph, dict):
        return set(graph).union(*map(attributes, graph.values()))
    return set().union(*map(attributes, graph)) if isinstance(graph, list) else set()


def test_no_text_becomes_a_node_or_an_attribute(traces):
    hostile, benign = (
        json.loads(told(traces[name], "dot_json")) for name in ("hostile", "benign")
    )

    assert [one["name"] for one in hostile["objects"]] == [
        one["name"] for one in benign["objects"]
    ]
    assert len(hostile["edges"]) == len(benign["edges"])
    assert attributes(hostile) == attributes(benign)
    assert FORBIDDEN.isdisjoint(attributes(hostile))


def test_graphviz_own_picture_loads_nothing_and_leads_nowhere(traces):
    hostile, benign = (told(traces[name], "svg") for name in ("hostile", "benign"))

    assert active_parts(hostile) == []
    assert b"<?xml-stylesheet" not in hostile
    assert structure(hostile) == structure(benign)


@pytest.mark.parametrize(("suffix", "begin"), [(".png", b"\x89PNG"), (".pdf", b"%PDF")])
def test_graphviz_draws_them(suffix, begin, traces):
    assert drawn(traces["hostile"], suffix).startswith(begin)
