import pytest

import gradviz as gv
from gradviz.autograd import graph


@pytest.fixture
def x():
    return gv.tensor([1.0, 2.0], requires_grad=True)


def asked(loss, at, question, **options):
    """Return the result of `question` while the gradient of `at` is on its way."""
    answers = []
    at.register_hook(lambda grad: answers.append(question()))
    loss.backward(**options)
    return answers[0]


def test_outside_of_a_pass_there_is_nothing():
    """K2."""
    assert graph.current_graph_task_id() == -1
    assert graph.current_graph_task_keep_graph()
    assert graph.current_graph_task_exec_info() is None
    assert graph.current_graph_task_nodes() is None


def test_inside_there_is_the_pass(x):
    """K2."""
    y = x.exp()

    nodes = asked(y.sum(), y, graph.current_graph_task_nodes)

    assert {node.name() for node in nodes} == {"ExpBackward0", "AccumulateGrad"}


@pytest.mark.parametrize("keep", [False, True])
def test_a_pass_reports_if_its_graph_is_kept(x, keep):
    y = x.exp()
    question = graph.current_graph_task_keep_graph
    assert asked(y.sum(), y, question, retain_graph=keep) is keep


@pytest.mark.parametrize(
    "function",
    [
        graph.current_graph_task_execution_order,
        lambda: graph.will_execute_node(gv.ones(1, requires_grad=True).exp().grad_fn),
        lambda: graph.add_node_to_current_graph_task(None),
    ],
)
def test_a_function_that_needs_a_pass_is_refused_outside_of_one(function):
    """K3, K4."""
    with pytest.raises(RuntimeError, match="only be called during the backward pass"):
        function()


def test_a_callback_runs_when_the_last_node_has(x):
    """C20."""
    seen = []
    y = x.exp()
    y.register_hook(
        lambda grad: graph.queue_callback(lambda: seen.append(x.grad.tolist()))
    )

    y.sum().backward()

    assert seen == [x.grad.tolist()]


def test_the_order_of_the_pass_can_be_asked_for_by_a_hook(x):
    """K4."""
    y = x.exp()

    order = asked(y.sum(), y, graph.current_graph_task_execution_order)

    assert [one.node.name() for one in order] == [
        "SumBackward0",
        "ExpBackward0",
        "AccumulateGrad",
    ]


def test_a_node_that_the_pass_does_not_want_will_not_run(x):
    """K3."""
    other = gv.tensor([1.0, 2.0], requires_grad=True)
    y, z = x.exp(), other.exp()

    def question():
        return graph.will_execute_node(y.grad_fn), graph.will_execute_node(z.grad_fn)

    product = y * z
    assert asked(product.sum(), product, question, inputs=(x,)) == (True, False)


def test_a_node_of_another_graph_will_not_run(x):
    y, other = x.exp(), x.sin().grad_fn
    assert not asked(y.sum(), y, lambda: graph.will_execute_node(other))


def test_of_a_leaf_that_grad_returns_neither_answer_is_right(x):
    """K3."""
    y = x.exp()
    leaf = y.grad_fn.next_edges[0].node
    y.register_hook(lambda grad: graph.will_execute_node(leaf) and None)

    with pytest.raises(RuntimeError, match="A leaf node was passed"):
        gv.autograd.grad(y.sum(), x)


def test_a_node_added_to_a_restricted_pass_runs(x):
    """K2."""
    other = gv.tensor([1.0, 2.0], requires_grad=True)
    product = x * other
    leaf = product.grad_fn.next_edges[1].node
    loss = product.sum()
    loss.register_hook(lambda grad: graph.add_node_to_current_graph_task(leaf))

    loss.backward(inputs=(x,))

    assert other.grad.tolist() == [1.0, 2.0]


def test_a_restricted_pass_computes_no_gradient_that_goes_nowhere():
    """I8."""
    base = gv.tensor([2.0], requires_grad=True)
    exponent = gv.tensor([3.0], requires_grad=True)
    power = base**exponent
    returned = []
    power.grad_fn.register_hook(lambda outputs, inputs: returned.append(outputs))

    (grad,) = gv.autograd.grad(power.sum(), base, retain_graph=True)
    power.sum().backward()

    assert grad.tolist() == [12.0]
    assert [one is None for one in returned[0]] == [False, True]
    assert [one is None for one in returned[1]] == [False, False]


class TestNodeCreationHook:
    """C19."""

    def test_it_sees_each_node_that_an_op_makes_in_the_block(self, x):
        seen = []
        with graph.node_creation_hook(lambda node: seen.append(node.name())):
            y = x.exp()
            y.sum()
        x.sin()

        assert seen == ["ExpBackward0", "SumBackward0"]

    def test_outer_hooks_come_first(self, x):
        seen = []
        with (
            graph.node_creation_hook(lambda node: seen.append("outer")),
            graph.node_creation_hook(lambda node: seen.append("inner")),
        ):
            x.exp()

        assert seen == ["outer", "inner"]

    def test_an_op_without_gradients_makes_no_node(self):
        seen = []
        with graph.node_creation_hook(seen.append):
            gv.tensor([1.0]).exp()

        assert seen == []

    def test_it_sees_what_the_node_has_saved(self, x):
        seen = []
        with graph.node_creation_hook(lambda node: seen.append(node.saved)):
            y = x.exp()

        assert seen[0][0].array is y.array

    def test_the_nodes_of_a_differentiable_backward_are_seen_too(self, x):
        seen = []
        loss = (x * x).sum()
        with graph.node_creation_hook(lambda node: seen.append(node.name())):
            gv.autograd.grad(loss, x, create_graph=True)

        assert "MulBackward0" in seen

    def test_it_must_return_nothing(self, x):
        with (
            graph.node_creation_hook(lambda node: node),
            pytest.raises(RuntimeError, match="should return None"),
        ):
            x.exp()

    def test_ops_inside_of_it_are_refused(self, x):
        with (
            graph.node_creation_hook(lambda node: x.sin() and None),
            pytest.raises(RuntimeError, match="a node creation hook ran an op"),
        ):
            x.exp()


class TestANodeAlone:
    def test_it_returns_the_gradient_of_its_only_input(self, x):
        y = x.exp()

        assert y.grad_fn(gv.ones(2)).tolist() == y.tolist()

    def test_it_returns_those_of_several(self, x):
        y = x * gv.tensor([3.0, 4.0], requires_grad=True)

        of_x, of_other = y.grad_fn(gv.ones(2))

        assert of_x.tolist() == [3.0, 4.0]
        assert of_other.tolist() == [1.0, 2.0]

    def test_the_gradient_it_returns_is_part_of_the_graph(self, x):
        gradient = (x**3).grad_fn(gv.ones(2))
        gradient.sum().backward()

        assert x.grad.tolist() == [6.0, 12.0]

    def test_without_gradient_mode_it_is_not(self, x):
        with gv.no_grad():
            assert not (x**3).requires_grad
        y = x**3
        with gv.no_grad():
            assert not y.grad_fn(gv.ones(2)).requires_grad

    def test_a_gradient_that_did_not_come_is_none(self, x):
        assert (x * x).grad_fn(None) == (None, None)

    @pytest.mark.parametrize(
        ("grads", "message"),
        [
            ((), "expected 1 arguments, got 0 instead"),
            ((1, 2), "expected 1 arguments, got 2 instead"),
            ((1,), "argument 0 is not a Variable"),
        ],
    )
    def test_it_takes_one_tensor_for_each_output(self, x, grads, message):
        with pytest.raises(TypeError, match=message):
            (x * x).grad_fn(*grads)
