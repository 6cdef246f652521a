"""Fields of nodes that were set to what the engine cannot use."""

import contextlib
import re

import numpy as np
import pytest

import gradviz as gv
from gradviz.engine import Edge, Engine, InputMetadata, Node
from gradviz.engine.graph.node import NodeHooks
from gradviz.engine.graph.odd_fields import error_at, error_in_graph, odd_field
from gradviz.errors import EngineError
from tests.engine.nodes import Pass, Sink


class Odd:
    """Of no use to anybody."""


def spoiled_edge() -> Edge:
    edge = Edge(None)
    edge.node = Odd()  # type: ignore[assignment]
    return edge


def spoiled_hooks() -> NodeHooks:
    hooks = NodeHooks()
    hooks.pre = 3  # type: ignore[assignment]
    return hooks


FIELDS = [
    ("next_edges", None, "next_edges is NoneType, expected a tuple of edges"),
    ("next_edges", (None,), "next_edges[0] is NoneType, expected an Edge"),
    ("next_edges", (Edge(None), "x"), "next_edges[1] is str, expected an Edge"),
    ("topological_nr", "many", "topological_nr is str, expected an integer"),
    ("sequence_nr", None, "sequence_nr is NoneType, expected an integer"),
    ("input_metadata", Odd(), "input_metadata is Odd, expected a tuple of"),
    ("input_metadata", (3,), "input_metadata[0] is int, expected InputMetadata or"),
    ("runs_on", "cpu", "runs_on is str, expected a Device"),
    ("hooks", 3, "hooks is int, expected NodeHooks or None"),
    ("hooks", spoiled_hooks(), "hooks.pre is int, expected a tuple of hooks"),
]
OF_OPS = [
    ("plan", None, "plan is NoneType, expected the Plan"),
    ("saved", 3, "saved is int, expected a tuple"),
    ("saved", (), "saved is a tuple of 0, expected a tuple"),
    ("saved", ("text",), "saved[0] is str, expected a saved tensor"),
    ("saved", (None,), "saved[0] is NoneType, expected a saved tensor"),
    ("saved", (np.ones(7),), "saved[0] is ndarray, expected a saved tensor"),
    (
        "saved",
        (gv.Tensor.__new__(gv.Tensor),),
        "saved[0] is a Tensor without an array, expected a saved tensor",
    ),
    (
        "saved",
        (gv.ones(5),),
        "saved[0] is a Tensor of shape [5], expected one of shape [2]",
    ),
]


def check(node: Node, field: str, value: object, words: str, use) -> None:
    """Spoil a field, use its node, and look at the error."""
    try:
        setattr(node, field, value)
    except TypeError:
        assert gv.compiled  # which has types in C for some fields
        return
    with pytest.raises(TypeError, match=re.escape(words)) as caught:
        use()
    assert f"node {type(node).__name__} (#{node.id})" in str(caught.value)
    assert "something has changed the node since it was made" in str(caught.value)


@pytest.mark.parametrize("which", ["root", "inner", "leaf"])
@pytest.mark.parametrize("wants", ["backward", "grad"])
@pytest.mark.parametrize(("field", "value", "words"), FIELDS)
def test_a_backward_names_node_and_field(which, wants, field, value, words):
    x = gv.tensor([1.0, 2.0], requires_grad=True)
    middle = x * 2
    y = middle.exp().sum()
    leaf = middle.grad_fn.next_edges[0].node
    node = {"root": y.grad_fn, "inner": middle.grad_fn, "leaf": leaf}[which]
    if (which, wants, words) == ("leaf", "grad", FIELDS[-1][2]):
        return  # hooks before a node do not run where it is only captured
    use = y.backward if wants == "backward" else lambda: gv.autograd.grad(y, [x])

    check(node, field, value, words, use)


@pytest.mark.parametrize(("field", "value", "words"), OF_OPS)
def test_a_backward_names_what_an_op_has_lost(field, value, words):
    x = gv.tensor([1.0, 2.0], requires_grad=True)
    y = x.exp()

    check(y.grad_fn, field, value, words, y.sum().backward)


def test_a_shape_that_is_none_is_named():
    x = gv.tensor([1.0, 2.0], requires_grad=True)
    y = x.sum(0)
    node = y.grad_fn
    saved = (None, *node.saved[1:])

    words = "saved[0] is NoneType, expected a shape"
    check(node, "saved", saved, words, y.backward)


@pytest.mark.parametrize("index", [0, 1])
def test_a_tensor_of_another_shape_is_named(index):
    x, y = (gv.tensor(np.ones((2, 3)), requires_grad=True) for _ in range(2))
    z = x * y
    saved = [*z.grad_fn.saved]
    saved[index] = gv.ones(2, 4)

    words = f"saved[{index}] is a Tensor of shape [2, 4], expected one of shape [2, 3]"
    check(z.grad_fn, "saved", tuple(saved), words, z.sum().backward)


@pytest.mark.parametrize("odd", [3, None, "text", Odd(), (1, 2)])
def test_a_constant_that_is_of_no_use_is_named(odd):
    x = gv.tensor([1.0, -2.0], requires_grad=True)
    y = gv.where(x > 0, x, 2.0)
    (name,) = y.grad_fn.plan.names

    kind = type(odd).__name__
    words = f"saved is ({name}: {kind}), expected the values that its op kept"
    check(y.grad_fn, "saved", (odd,), words, y.sum().backward)


def test_a_formula_that_fails_by_its_numbers_is_not_blamed_on_a_field():
    x = gv.tensor(np.eye(2), requires_grad=True)
    y = gv.where(x > 0, x, 2.0)
    y.register_hook(lambda grad: np.linalg.inv(np.zeros((2, 2))))

    with pytest.raises(np.linalg.LinAlgError):
        y.sum().backward()


class Incomparable:
    def __ge__(self, other):
        raise RuntimeError("no order")


@pytest.mark.parametrize(
    "value",
    [None, "many", 2.5, float("inf"), 1j, np.ones(1), np.ones(2), Incomparable()],
)
@pytest.mark.parametrize("records", [False, True])
def test_an_op_over_a_node_without_a_number_names_that_node(value, records):
    x = gv.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    words = f"topological_nr is {type(value).__name__}, expected an integer"

    with gv.record() if records else contextlib.nullcontext():
        check(y.grad_fn, "topological_nr", value, words, lambda: x + y)
        check(y.grad_fn, "topological_nr", value, words, lambda: gv.stack([x, y]))
        check(y.grad_fn, "topological_nr", value, words, lambda: Pass(y.grad_fn))


def test_a_number_below_those_of_the_nodes_after_it_is_named():
    x = gv.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    y.grad_fn.topological_nr = -5

    check(
        y.grad_fn,
        "topological_nr",
        -5,
        "topological_nr is -5, expected 0 or more",
        y.exp().sum().backward,
    )


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        one
        for one in FIELDS
        if one[0] not in {"topological_nr", "next_edges", "runs_on"}
    ],
)
def test_a_hook_in_mid_pass_may_spoil_what_comes_later(field, value, words):
    x = gv.tensor([1.0, 2.0], requires_grad=True)
    middle = x * 2
    y = middle.exp()
    node = middle.grad_fn

    def use() -> None:
        y.register_hook(lambda grad: setattr(node, field, value))
        y.sum().backward()

    check(node, field, getattr(node, field), words, use)


def test_edges_that_are_replaced_in_mid_pass_are_named_although_their_number_is_wrong():
    x = gv.tensor([1.0, 2.0], requires_grad=True)
    middle = x * 2
    y = middle.exp()
    y.register_hook(lambda grad: setattr(middle.grad_fn, "next_edges", (3, 4, 5)))

    with pytest.raises(TypeError, match=r"next_edges\[0\] is int, expected an Edge"):
        y.sum().backward()


def test_an_error_on_a_device_thread_names_the_spoiled_field_in_its_cause():
    x = gv.tensor([1.0, 2.0], device="sim:0", requires_grad=True)
    middle = x * 2
    loss = middle.exp().sum()
    middle.grad_fn.sequence_nr = None

    with pytest.raises(EngineError) as caught:
        loss.backward()
    assert "sequence_nr is NoneType, expected an integer" in str(caught.value.__cause__)


@pytest.mark.parametrize(
    ("part", "value", "words"),
    [
        ("node", Odd(), "next_edges[0].node is Odd, expected a Node or None"),
        ("input_nr", None, "next_edges[0].input_nr is NoneType, expected an integer"),
        ("input_nr", 7, "next_edges[0].input_nr is 7, expected the number of one of"),
    ],
)
def test_an_edge_that_was_spoiled_is_named(part, value, words):
    root = Pass(Sink())
    edge = root.next_edges[0]
    try:
        setattr(edge, part, value)
    except TypeError:
        assert gv.compiled
        return

    with pytest.raises(TypeError, match=re.escape(words)):
        Engine().execute([Edge(root, 0)], [1.0])


def test_spoiled_input_metadata_is_named_in_the_error():
    x = gv.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    y.grad_fn.input_metadata[0].shape = 3
    words = "input_metadata[0].shape is int, expected a tuple of integers"

    with pytest.raises(TypeError, match=re.escape(words)):
        y.exp().sum().backward()


def test_the_order_that_is_asked_for_names_it_too():
    root = Pass(Sink())
    root.next_edges[0].node.next_edges = None

    with pytest.raises(TypeError, match="next_edges is NoneType"):
        gv.engine.predicted_order([Edge(root, 0)])


@pytest.mark.parametrize("register", ["register_hook", "register_prehook"])
def test_hooks_are_not_added_to_what_holds_none(register):
    node = Sink()
    node.hooks = 3

    with pytest.raises(TypeError, match="hooks is int, expected NodeHooks or None"):
        getattr(node, register)(lambda *_: None)


def test_a_call_of_a_node_names_the_field():
    x = gv.tensor([1.0, 2.0], requires_grad=True)
    node = (x * x).grad_fn
    node.saved = (3,)

    with pytest.raises(TypeError, match="saved is a tuple of 1, expected"):
        node(gv.ones(2))


def test_an_error_of_the_users_stays_what_it_is():
    class Failing(Node):
        def apply(self, *grads):
            raise AttributeError("mine")

    with pytest.raises(AttributeError, match="mine"):
        Engine().execute([Edge(Failing(), 0)], [1.0])


def test_the_error_that_the_field_led_to_is_the_cause():
    node = Pass(Sink())
    node.hooks = 3

    with pytest.raises(TypeError) as caught:
        Engine().execute([Edge(node, 0)], [1.0])

    assert isinstance(caught.value.__cause__, AttributeError)


def test_a_node_that_was_never_made_whole_is_named_too():
    root = Pass(Sink())
    root.next_edges = (Edge(Node.__new__(Node)),)

    with pytest.raises(TypeError, match=r"node Node \(#None\): its topological_nr is"):
        Engine().execute([Edge(root, 0)], [1.0])


def test_nodes_with_all_of_their_fields_have_no_odd_one():
    x = gv.tensor([1.0, 2.0], requires_grad=True)
    y = ((x * x).exp().sum() * 3).reshape(1)
    y.register_hook(lambda grad: None)
    error = TypeError("another")

    assert odd_field(y.grad_fn) is None
    assert error_in_graph(error, y.grad_fn, None) is error
    assert error_at(error, y.grad_fn) is error
    assert error_at(KeyboardInterrupt(), y.grad_fn).__cause__ is None
    assert odd_field(Node([Edge(Sink(), 0)], [metadata])) is None


metadata = InputMetadata((2,), np.dtype("f4"))
