import pytest

import gradviz as gv
from gradviz.ops.variables.saved_variable import hooks_on_saving, no_hooks_on_saving


@pytest.fixture
def x():
    return gv.tensor([1.0, 2.0], requires_grad=True)


def test_an_input_is_saved_as_it_is(x):
    y = x * 2

    assert (y * y).grad_fn._saved_self is y


@pytest.mark.parametrize("requires_grad", [True, False])
def test_an_inference_tensor_is_not_saved(x, requires_grad):
    with gv.inference_mode():
        constant = gv.ones(2, requires_grad=requires_grad)

    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved"):
        constant * x
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved"):
        x @ constant


def test_a_result_is_saved_without_its_edge_and_shown_with_it(x):
    y = x.exp()

    assert y.grad_fn.saved[0] is not y
    assert y.grad_fn._saved_result.grad_fn is y.grad_fn
    assert y.grad_fn._saved_result.array is y.array


def test_a_value_that_no_gradient_needs_is_not_saved(x):
    node = (x * 3).grad_fn

    assert node._saved_self is None
    assert node._saved_other == 3


def test_a_saved_tensor_changed_in_place_raises_pytorchs_error(x):
    """G17."""
    y = x.relu()
    z = y * y

    y.add_(1)

    with pytest.raises(RuntimeError) as caught:
        z.sum().backward()
    assert str(caught.value) == (
        "one of the variables needed for gradient computation has been modified by an "
        "inplace operation: [gradviz.FloatTensor [2]], which is output 0 of Add, is at "
        "version 1; expected version 0 instead. Hint: enable anomaly detection to find "
        "the operation that failed to compute its gradient, with "
        "gradviz.autograd.set_detect_anomaly(True, check_nan=False)."
    )


def test_a_change_before_it_was_saved_is_none(x):
    y = (x * 1).add_(1)

    (y * y).sum().backward()

    assert x.grad.tolist() == [4.0, 6.0]


def test_a_change_of_a_leaf_under_no_grad_is_noticed_too(x):
    y = x * x
    with gv.no_grad():
        x.add_(1)

    with pytest.raises(RuntimeError, match=r"FloatTensor \[2\]\] is at version 1"):
        y.sum().backward()


def test_a_change_through_a_detached_tensor_is_noticed(x):
    y = x * x

    x.detach().zero_()

    with pytest.raises(RuntimeError, match="is at version 1"):
        y.sum().backward()


def test_a_change_through_data_is_not(x):
    y = x * x

    x.data.zero_()
    y.sum().backward()

    assert x.grad.tolist() == [0.0, 0.0]


def test_a_saved_tensor_detached_in_place_raises_an_error(x):
    y = x.clone()
    z = y.sin()

    y.detach_()

    with pytest.raises(RuntimeError, match="that has been detached in-place"):
        z.sum().backward()


class TestHooks:
    def test_saved_values_go_through_the_hooks(self, x):
        seen = []

        def pack(value):
            seen.append(value.tolist())
            return value.detach() * 10

        with hooks_on_saving(pack, lambda packed: packed / 10):
            y = x * x

        y.sum().backward()
        assert seen == [[1.0, 2.0], [1.0, 2.0]]
        assert x.grad.tolist() == [2.0, 4.0]

    def test_a_result_comes_with_its_node(self, x):
        nodes = []

        with hooks_on_saving(lambda one: nodes.append(one.grad_fn) or one, lambda p: p):
            y = x.exp()

        assert nodes == [y.grad_fn]

    def test_they_see_no_gradient_mode(self, x):
        modes = []

        def pack(value):
            modes.append(gv.is_grad_enabled())
            return value

        with hooks_on_saving(pack, lambda packed: packed):
            x.sin()

        assert modes == [False]

    def test_the_innermost_pair_is_used(self, x):
        calls = []

        def named(name):
            return lambda value: calls.append(name) or value

        with hooks_on_saving(named("outer"), named("outer")):
            with hooks_on_saving(named("inner"), named("inner")):
                y = x.sin()
            x.cos()
        y.sum().backward()

        assert calls == ["inner", "outer", "inner"]

    def test_gradients_of_gradients_go_through_them(self, x):
        with hooks_on_saving(lambda one: one.detach().clone(), lambda packed: packed):
            y = (x * x * x).sum()

        (first,) = gv.autograd.grad(y, x, create_graph=True)
        (second,) = gv.autograd.grad(first.sum(), x)
        assert second.tolist() == [6.0, 12.0]

    def test_one_that_changes_its_input_is_an_error(self, x):
        with (
            hooks_on_saving(lambda one: one.add_(1), lambda packed: packed),
            pytest.raises(RuntimeError, match="hook is modifying its input in place"),
        ):
            (x * 1).sin()

    def test_one_that_returns_no_tensor_is_an_error(self, x):
        with hooks_on_saving(lambda one: one, lambda packed: 1):
            y = x.sin()

        with pytest.raises(TypeError, match="unpack_hook expected to be a Tensor"):
            y.sum().backward()

    def test_they_can_be_disabled(self):
        with (
            no_hooks_on_saving("not here"),
            pytest.raises(RuntimeError, match="not here"),
            hooks_on_saving(lambda one: one, lambda one: one),
        ):
            pass


class TestRawSaved:
    def test_hooks_can_be_registered_on_it(self, x):
        y = x.exp()

        y.grad_fn._raw_saved_result.register_hooks(lambda v: v * 2, lambda p: p / 2)
        y.sum().backward()

        assert x.grad.tolist() == pytest.approx(y.tolist())

    def test_once(self, x):
        saved = x.exp().grad_fn._raw_saved_result
        saved.register_hooks(lambda v: v, lambda p: p)

        with pytest.raises(RuntimeError, match="hooks have already been set"):
            saved.register_hooks(lambda v: v, lambda p: p)

    @pytest.mark.parametrize("hooks", [(), (abs,), (1, 1), (abs, 1), (abs, abs, abs)])
    def test_both_of_them_whatever_is_kept(self, x, hooks):
        words = "register_hooks.*incompatible function arguments"
        by_itself, exponential = (x * x).grad_fn, x.exp().grad_fn

        with pytest.raises(TypeError, match=words):
            by_itself._raw_saved_self.register_hooks(*hooks)
        with pytest.raises(TypeError, match=words):
            exponential._raw_saved_result.register_hooks(*hooks)

    def test_a_freed_value_accepts_no_hooks(self, x):
        y = x.exp()
        saved = y.grad_fn._raw_saved_result
        y.sum().backward()

        with pytest.raises(RuntimeError, match="after it has been freed"):
            saved.register_hooks(lambda v: v, lambda p: p)
        with pytest.raises(RuntimeError, match="a second time"):
            _ = y.grad_fn._saved_result
