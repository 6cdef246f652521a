import pytest

import gradviz as gv
from gradviz import nn
from gradviz.diagnostics import Reason, remember_origins, why_none


@pytest.fixture
def leaf():
    return gv.ones(2, requires_grad=True)


class Stop(gv.autograd.Function):
    """Returns no gradient."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return None


def test_a_gradient_that_is_there_is_not_missing(leaf):
    leaf.sum().backward()

    assert why_none(leaf).reason is Reason.THERE_IS_ONE


def test_a_tensor_that_an_op_made_is_no_leaf(leaf):
    y = leaf * 2
    y.sum().backward()

    answer = why_none(y)

    assert answer.reason is Reason.NOT_A_LEAF
    assert "MulBackward0" in str(answer)
    assert "retain_grad" in str(answer)


def test_the_line_that_made_it_is_told_if_it_is_remembered(leaf):
    with remember_origins():
        y = leaf * 2

    assert f"at {__file__}:" in str(why_none(y))
    assert "remember_origins" in str(why_none(leaf * 2))


def test_a_tensor_made_under_no_grad_is_reported_with_its_line(leaf):
    with remember_origins(), gv.no_grad():
        y = leaf * 2

    answer = why_none(y)

    assert answer.reason is Reason.UNDER_NO_GRAD
    assert f"at {__file__}:" in str(answer)
    assert "(y = leaf * 2)" in str(answer)


def test_a_tensor_made_of_inputs_without_gradient_is_reported_with_its_line():
    with remember_origins():
        y = gv.ones(2) + 1

    answer = why_none(y)

    assert answer.reason is Reason.NOT_REQUIRED
    assert "(y = gv.ones(2) + 1)" in str(answer)


def test_afterwards_tensors_remember_nothing(leaf):
    with remember_origins():
        inside = leaf * 2
    outside = inside * 2

    assert type(outside) is gv.Tensor
    assert isinstance(inside, gv.Tensor)


def test_the_part_of_the_model_that_made_it_is_told():
    y = nn.name_root(nn.Sequential(nn.Linear(2, 2)), "made")(gv.ones(1, 2))

    assert "in made.0" in str(why_none(y))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda leaf: gv.tensor([1, 2]), "type int64"),
        (lambda leaf: gv.ones(2), "without requires_grad=True"),
        (lambda leaf: leaf.detach()[:1], "shares its memory"),
    ],
)
def test_the_answer_for_a_tensor_that_requires_no_gradient_gives_the_cause(
    leaf, make, words
):
    answer = why_none(make(leaf))

    assert answer.reason is Reason.NOT_REQUIRED
    assert words in str(answer)


def test_a_leaf_without_recorded_ops_is_not_used(leaf):
    with gv.no_grad():
        leaf * 2

    assert why_none(leaf).reason is Reason.NOT_USED


def test_a_leaf_of_a_graph_without_a_pass_is_not_reached(leaf):
    loss = (leaf * 2).sum()

    assert why_none(leaf).reason is Reason.NOT_REACHED
    assert loss.requires_grad


def test_a_loss_of_something_else_does_not_reach_it(leaf):
    other = gv.ones(2, requires_grad=True)
    used = (leaf * 2).sum()
    answer = why_none(leaf, (other * used.detach()).sum())

    assert answer.reason is Reason.NOT_REACHED
    assert "was not computed from it: its graph has 3 nodes" in str(answer)
    assert used.requires_grad


def test_a_loss_without_a_graph_is_told(leaf):
    used = (leaf * 2).sum()

    assert "no graph at all" in str(why_none(leaf, used.detach()))


def test_a_pass_that_was_not_asked_for_it_did_not_need_it(leaf):
    other = gv.ones(2, requires_grad=True)
    loss = (leaf * other).sum()
    loss.backward(inputs=[other], retain_graph=True)

    answer = why_none(leaf, loss)

    assert answer.reason is Reason.NOT_NEEDED
    assert leaf.grad is None


def test_after_the_graph_is_freed_less_can_be_told(leaf):
    other = gv.ones(2, requires_grad=True)
    loss = (leaf * other).sum()
    loss.backward(inputs=[other])

    answer = why_none(leaf, loss)

    assert answer.reason is Reason.NOT_NEEDED
    assert "retain_graph=True" in str(answer)


def test_the_node_that_returned_no_gradient_is_named(leaf):
    loss = (Stop.apply(leaf) * 3).sum()

    answer = why_none(leaf, loss)

    assert answer.reason is Reason.UNDEFINED
    assert "StopBackward" in str(answer)


def test_asking_leaves_hooks_and_gradients_as_they_were(leaf):
    other = gv.ones(2, requires_grad=True)
    loss = (leaf * other).sum()
    hooks = loss.grad_fn.hooks

    why_none(leaf, loss)

    assert other.grad is None
    assert not (loss.grad_fn.hooks and loss.grad_fn.hooks.post)
    assert hooks is None


def test_an_answer_reads_as_its_text(leaf):
    assert repr(why_none(leaf)) == str(why_none(leaf)) == why_none(leaf).text
