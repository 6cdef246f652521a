import gc
import threading

import pytest

import gradviz as gv
from gradviz.diagnostics import live_graphs


@pytest.fixture(autouse=True)
def _nothing_of_other_tests():
    """What other tests have left to be collected is not there."""
    gc.collect()


class Keeper:
    def __init__(self):
        self.history = []


class Rude:
    @property
    def __class__(self):
        raise RuntimeError("leave me alone")


def graphs_from(node):
    gc.collect()
    return [one for one in live_graphs() if one.root is node]


def test_a_graph_that_is_held_is_found():
    x = gv.ones(1000, requires_grad=True)
    loss = x.exp().sum()

    (graph,) = graphs_from(loss.grad_fn)

    assert graph.size.nodes == 3
    assert graph.size.saved_bytes == 4000


def test_the_variable_that_holds_it_is_named():
    loss = gv.ones(3, requires_grad=True).exp().sum()

    (graph,) = graphs_from(loss.grad_fn)

    holders = " ".join(graph.holders)
    assert "variable loss of test_the_variable_that_holds_it_is_named()" in holders


def test_the_way_to_it_is_told():
    keeper = Keeper()
    for _ in range(3):
        keeper.history.append(gv.ones(3, requires_grad=True).exp().sum())

    (graph,) = graphs_from(keeper.history[1].grad_fn)

    assert any("keeper" in one and "history" in one for one in graph.holders)
    assert any("[1]" in one for one in graph.holders)


def test_the_holder_of_each_of_many_is_told():
    keeper = Keeper()
    for _ in range(300):
        keeper.history.append(gv.ones(3, requires_grad=True).exp().sum())
    gc.collect()

    holders = {one.root: one.holders for one in live_graphs()}

    for place, loss in enumerate(keeper.history):
        (holder,) = (one for one in holders[loss.grad_fn] if "keeper" in one)
        assert f"variable keeper.history[{place}]" in holder


def test_a_graph_that_is_gone_is_not_found():
    loss = gv.ones(3, requires_grad=True).exp().sum()
    number = loss.grad_fn.id
    del loss
    gc.collect()

    assert all(one.root.id != number for one in live_graphs())


def test_the_largest_come_first():
    small = gv.ones(1, requires_grad=True).exp().sum()
    large = gv.ones(5000, requires_grad=True).exp().sum()

    roots = [one.root for one in live_graphs()]

    assert roots.index(large.grad_fn) < roots.index(small.grad_fn)


def test_objects_of_strangers_are_left_alone():
    rude = [Rude()]
    loss = gv.ones(3, requires_grad=True).sum()

    assert len(graphs_from(loss.grad_fn)) == len(rude)


@pytest.mark.parametrize("is_enabled", [False, True])
def test_collections_are_as_they_were(is_enabled):
    was_enabled = gc.isenabled()
    (gc.enable if is_enabled else gc.disable)()
    try:
        live_graphs()
        assert gc.isenabled() == is_enabled
    finally:
        (gc.enable if was_enabled else gc.disable)()


def test_variables_of_other_threads_are_named():
    made, looked = threading.Event(), threading.Event()
    roots = []

    def hold():
        theirs = gv.ones(3, requires_grad=True).exp().sum()
        roots.append(theirs.grad_fn)
        made.set()
        looked.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    made.wait(60)
    (graph,) = graphs_from(roots[0])
    looked.set()
    thread.join()

    assert any("variable theirs of hold()" in one for one in graph.holders)
