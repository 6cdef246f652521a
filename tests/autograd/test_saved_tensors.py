import pytest

import gradviz as gv
from gradviz.autograd.graph import (
    disable_saved_tensors_hooks,
    save_on_cpu,
    saved_tensors_hooks,
)
from gradviz.ops.variables import saved_variable


@pytest.fixture
def x():
    return gv.tensor([1.0, 2.0], requires_grad=True)


def test_a_saved_tensor_goes_through_the_hooks(x):
    packed = []

    def pack(tensor):
        packed.append(tensor.tolist())
        return tensor.detach() * 10

    with saved_tensors_hooks(pack, lambda tensor: tensor / 10):
        y = x * x
    y.sum().backward()

    assert packed == [[1.0, 2.0], [1.0, 2.0]]
    assert x.grad.tolist() == [2.0, 4.0]


def test_a_tensor_saved_outside_of_the_block_skips_the_hooks(x):
    def refuse(tensor):
        raise AssertionError("nothing is saved here")

    with saved_tensors_hooks(refuse, refuse):
        pass
    (x * x).sum().backward()

    assert x.grad.tolist() == [2.0, 4.0]


def test_one_object_may_be_entered_again_inside_itself(x):
    packed = []
    hooks = saved_tensors_hooks(lambda tensor: packed.append(1) or tensor, lambda t: t)
    with hooks:
        with hooks:
            x.exp()
        x.exp()

    assert len(packed) == 2


def test_hooks_may_be_forbidden(x):
    with (
        disable_saved_tensors_hooks("not here"),
        pytest.raises(RuntimeError, match=r"^not here$"),
        saved_tensors_hooks(lambda t: t, lambda t: t),
    ):
        pass


def test_a_saved_tensor_may_wait_in_host_memory():
    x = gv.ones(2, device="sim:0").requires_grad_()
    with save_on_cpu():
        y = x * x
    y.sum().backward()

    assert x.grad.cpu().tolist() == [2.0, 2.0]
    assert str(x.grad.device) == "sim:0"


def test_it_may_wait_in_pinned_memory_from_which_copies_are_not_waited_for():
    x = gv.ones(2, device="sim:0").requires_grad_()
    pinning = save_on_cpu(pin_memory=True)
    with gv.sim.stepped(seed=0):
        with pinning:
            y = x * x
        y.sum().backward()
        grad = x.grad.tolist()

    assert grad == [2.0, 2.0]
    assert pinning.pack_hook(x.detach())[1].is_pinned()
    assert not save_on_cpu().pack_hook(x.detach())[1].is_pinned()


def test_a_hook_may_keep_what_an_op_in_place_saves(x):
    with saved_tensors_hooks(lambda tensor: tensor.detach(), lambda tensor: tensor):
        y = x.clone().sin_()
    y.sum().backward()

    assert x.grad.tolist() == x.detach().cos().tolist()


def test_a_block_may_not_be_left_more_often_than_entered():
    hooks = saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor)

    with pytest.raises(RuntimeError, match="more often than entered"):
        hooks.__exit__(None, None, None)


def test_a_non_differentiable_saved_tensor_reaches_the_hooks_as_such(x):
    packed = []

    with saved_tensors_hooks(lambda tensor: packed.append(tensor) or tensor, abs):
        x.max(0)

    assert [(one.dtype, one.requires_grad) for one in packed] == [(gv.int64, False)]


class TestABlockLeftInABackward:
    """The caller gets its hooks back, so it has them still."""

    @pytest.fixture
    def packed(self):
        return []

    @pytest.fixture
    def block(self, packed):
        """A block that what unpacks in it leaves."""

        def unpack(tensor):
            block.__exit__(None, None, None)
            return tensor

        block = saved_tensors_hooks(
            lambda tensor: packed.append(tensor) or tensor, unpack
        )
        return block

    def test_has_its_hooks_until_the_caller_leaves_it(self, x, block, packed):
        with block:
            x.sin().sum().backward()
            x.exp()
            assert len(packed) == 2
        x.exp()
        assert len(packed) == 2

    def test_does_not_switch_off_those_that_come_later(self, x, block, packed):
        with block:
            x.sin().sum().backward()
        del packed[:]

        with saved_tensors_hooks(packed.append, lambda none: none):
            x.exp()

        assert len(packed) == 1

    def test_costs_those_outside_nothing(self, x, block):
        # Contexts that nobody has collected yet may have others.
        before = set(saved_variable.HOOKS_IN_USE)
        with block:
            x.sin().sum().backward()

        assert before >= saved_variable.HOOKS_IN_USE


def test_a_saved_tensor_has_a_class_that_cannot_be_created_from_python(x):
    class Kept(gv.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, None)
            return x * 2

    kept = ((x * x).grad_fn._raw_saved_self, *Kept.apply(x).grad_fn._raw_saved_tensors)

    assert all(isinstance(one, gv.autograd.SavedTensor) for one in kept)
    with pytest.raises(RuntimeError, match="from Python is forbidden"):
        gv.autograd.SavedTensor()
