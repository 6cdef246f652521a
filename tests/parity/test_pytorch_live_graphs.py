"""Holders of PyTorch's graphs: `gv.pytorch.live_graphs`."""

import collections
import gc
import warnings
import weakref
from typing import Any

import pytest

import gradviz as gv

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity

WEIGHT = torch.ones(100, requires_grad=True)


class Bag:
    """Holds what it is given."""

    __slots__ = ("__weakref__", "item")


@pytest.fixture(autouse=True)
def nothing_else():
    gc.collect()
    yield
    gc.collect()


def loss() -> Any:
    """The only graph that ends in a tangent."""
    return (WEIGHT * WEIGHT).sum().tan()


def found() -> list[Any]:
    return [one for one in gv.pytorch.live_graphs() if one.root == "TanBackward0"]


def the_only_one() -> Any:
    graphs = found()
    assert len(graphs) == 1, list(map(str, graphs))
    return graphs[0]


def holders() -> str:
    one = the_only_one()
    return " ".join(one.holders)


def test_nothing_is_found_where_no_graph_is_alive():
    loss()

    assert found() == []


def test_a_variable_of_a_function_holds_a_graph():
    kept = loss()

    one = the_only_one()

    assert "variable kept of test_a_variable_of_a_function" in one.holders[0]
    assert (one.num_graphs, one.num_nodes) == (1, 4)
    # What the tangent has saved: its result. The leaf is held by others anyway.
    assert one.saved_bytes == kept.nbytes


def test_a_list_of_losses_is_told_once_with_its_growth():
    losses = [loss() for _ in range(7)]

    one = the_only_one()

    assert one.num_graphs == 7
    assert one.saved_bytes == 7 * losses[0].nbytes
    assert any("variable losses[" in text for text in one.holders)
    assert "7 graphs like it" in str(one)
    assert "(4 each)" in str(one)


def in_dict():
    return {"total": [loss()]}, "['total'][0]"


def in_attribute():
    bag = Bag()
    bag.item = loss()
    return bag, ".item"


def in_module():
    net = torch.nn.Linear(1, 1)
    net.cache = loss()
    return net, ".cache"


def in_closure():
    one = loss()
    return lambda: one, "<closure one>"


def in_default():
    return lambda one=loss(): one, "<default one>"  # noqa: B008 - that is the point


def in_deque():
    return collections.deque([loss()], maxlen=3), "[0]"


def in_generator():
    def steps():
        one = loss()
        yield
        del one

    running = steps()
    next(running)
    return running, "variable one of steps()"


def in_traceback():
    def fail():
        one = loss()
        raise ValueError(one.shape)

    try:
        fail()
    except ValueError as error:
        return error, "variable one of fail()"


def in_hook():
    one = loss()
    leaf = torch.ones(1, requires_grad=True)
    leaf.register_hook(lambda grad: grad * one.item())
    return leaf, "<closure one>"


@pytest.mark.parametrize(
    "make",
    [
        *(in_dict, in_attribute, in_module, in_closure, in_default, in_deque),
        *(in_generator, in_traceback, in_hook),
    ],
)
def test_each_kind_of_holder_of_a_graph_is_named(make):
    holder, path = make()

    assert path in holders()
    del holder


def test_a_gradient_with_a_graph_is_held_by_its_parameter():
    parameter = torch.nn.Parameter(torch.ones(3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (parameter**3).sum().backward(create_graph=True)

    texts = [text for one in gv.pytorch.live_graphs() for text in one.holders]

    assert any("variable parameter.grad" in text for text in texts)
    parameter.grad = None


def test_graphs_below_another_are_told_with_that():
    middle = WEIGHT * 2
    kept = (middle * middle).sum().tan()

    assert len(found()) == 1
    del kept


def test_nothing_is_held_and_nothing_changes():
    kept = loss()
    gone = weakref.ref(kept)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first, second = gv.pytorch.live_graphs(), gv.pytorch.live_graphs()

    assert first == second
    kept.backward()
    del kept
    assert gone() is None
    assert found() == []
    WEIGHT.grad = None


def test_the_line_is_known_of_a_graph_that_was_recorded():
    with gv.pytorch.record():
        kept = loss()

    one = the_only_one()

    assert one.location.startswith(__file__)
    del kept


def test_tensors_that_cannot_be_asked_are_no_obstacle():
    from torch._subclasses.fake_tensor import FakeTensorMode

    class Loud(torch.Tensor):
        @classmethod
        def __torch_function__(cls, *args: Any, **kwargs: Any) -> Any:
            raise AssertionError("the program hears of it")

    loud = torch.Tensor._make_subclass(Loud, torch.ones(1), True)
    with FakeTensorMode():
        fake = torch.ones(2, requires_grad=True) * 2
    sparse = torch.eye(2).to_sparse().requires_grad_()
    kept = loss()

    assert "variable kept" in holders()
    del loud, fake, sparse, kept


def test_a_long_chain_is_found_and_freed():
    one = WEIGHT.sum()
    for _ in range(20_000):
        one = one + 1
    kept = one.tan()
    del one

    graph = the_only_one()

    assert graph.num_nodes == 20_003
    del kept
    assert found() == []
