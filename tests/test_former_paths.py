import importlib
import sys

import pytest

from gradviz.former_paths import FORMER


@pytest.mark.parametrize("former", FORMER)
def test_a_former_path_leads_to_the_module_itself(former, monkeypatch):
    monkeypatch.delitem(sys.modules, former, raising=False)
    module = importlib.import_module(FORMER[former])
    spec = module.__spec__

    assert importlib.import_module(former) is module
    assert module.__spec__ is spec
    assert module.__name__ == FORMER[former]


def test_the_former_module_that_is_a_room_now_has_its_function():
    from gradviz.render.graph import render_graph
    from gradviz.render.graph.graph_picture import render_graph as same

    assert render_graph is same


def test_other_names_are_as_unknown_as_before():
    with pytest.raises(ModuleNotFoundError, match=r"gradviz\.analysis\.nothing"):
        importlib.import_module("gradviz.analysis.nothing")
    with pytest.raises(ImportError, match="nothing"):
        from gradviz.render.graph import nothing  # noqa: F401
