"""Hooks of PyTorch programs: named, timed, and left as they are."""

import functools
import pickle
import traceback
from collections import OrderedDict

import pytest

import gradviz as gv
from gradviz.analysis.tables.hook_calls import HookCall, hook_calls
from tests.parity.pytorch_recordings import faults, leaf, recorded

torch = pytest.importorskip("torch")


def nothing(*_):
    """A hook that changes nothing."""


class Callable:
    def __call__(self, *_):
        """Change nothing."""


def line(function, offset=0):
    return f"{__file__}:{function.__code__.co_firstlineno + offset}"


def calls_of(program) -> list[HookCall]:
    recording = recorded(program)
    assert faults(recording) == []
    return hook_calls(recording.trace)


def on_everything():
    net = torch.nn.Linear(3, 3)
    net.register_full_backward_pre_hook(nothing)
    net.register_full_backward_hook(nothing)
    net.weight.register_post_accumulate_grad_hook(Callable())
    net.bias.register_hook(nothing)
    y = net(leaf(2, 3))
    z = y.sin()
    z.register_hook(functools.partial(nothing))
    z.grad_fn.register_prehook(nothing)
    z.grad_fn.register_hook(nothing)
    torch.autograd.graph.register_multi_grad_hook((z,), nothing)
    z.sum().backward()


def test_each_kind_of_hook_is_named_with_its_lines_in_the_order_of_the_calls():
    calls = calls_of(on_everything)
    assert [(one.kind, one.registered_at) for one in calls] == [
        ("tensor_pre", line(on_everything, 8)),
        ("tensor_pre", line(on_everything, 11)),
        ("pre", line(on_everything, 9)),
        ("post", line(on_everything, 10)),
        ("module_pre", line(on_everything, 2)),
        ("tensor_pre", line(on_everything, 5)),
        ("post_accumulate_grad", line(on_everything, 4)),
        ("module", line(on_everything, 3)),
    ]
    functions = {(one.function, one.defined_at) for one in calls}
    assert functions == {
        ("nothing", line(nothing)),
        ("Callable", line(Callable.__call__)),
    }
    assert {one.target.partition("#")[0] for one in calls} == {"", "Linear"}
    assert all(one.inferred for one in calls)


def test_of_one_hook_the_time_is_known_and_of_several_that_of_all():
    first, second, third, post, *_ = calls_of(on_everything)
    assert first.took_ns is second.took_ns is third.took_ns is None
    assert first.together_ns == second.together_ns == third.together_ns > 0
    assert post.took_ns > 0
    assert post.together_ns is None


def test_hooks_of_leaves_from_before_the_recording_are_named_without_their_line():
    x = leaf()
    x.register_hook(nothing)
    x.register_post_accumulate_grad_hook(nothing)
    calls = calls_of(lambda: x.sin().sum().backward())
    assert [(one.kind, one.function, one.registered_at) for one in calls] == [
        ("tensor_pre", "nothing", ""),
        ("post_accumulate_grad", "nothing", ""),
    ]


def test_a_hook_that_was_removed_is_not_told():
    def program():
        y = leaf().sin()
        y.register_hook(nothing).remove()
        y.grad_fn.register_hook(nothing).remove()
        y.sum().backward()

    assert calls_of(program) == []


def test_hooks_registered_between_two_passes_are_those_of_the_second():
    def program():
        y = leaf().sin()
        z = y.sum()
        z.backward(retain_graph=True)
        y.register_hook(nothing)
        y.grad_fn.register_hook(nothing)
        z.backward()

    calls = calls_of(program)
    assert [one.kind for one in calls] == ["tensor_pre", "post"]
    assert len({one.task for one in calls}) == 1


def test_hooks_of_what_is_captured_and_does_not_run_are_told():
    def program():
        y = leaf().sin()
        y.register_hook(nothing)
        torch.autograd.grad(y.sum(), y)

    assert [one.kind for one in calls_of(program)] == ["tensor_pre"]


def test_looking_for_the_node_of_a_hook_registers_nothing():
    def program():
        found = []
        y = leaf().sin()
        z = y.exp()
        y.grad_fn.register_hook(lambda *_: found.append("hook"))
        before = torch.utils.hooks.RemovableHandle.next_id
        z.sum().backward()
        assert torch.utils.hooks.RemovableHandle.next_id == before
        assert found == ["hook"]

    (call,) = calls_of(program)
    assert call.kind == "post"


def test_dicts_and_handles_of_hooks_are_as_without_a_recording():
    def registered():
        x = leaf()
        x.register_hook(nothing)
        handle = x.register_hook(nothing)
        y = x.sin()
        y.register_hook(nothing)
        y.sum().backward()
        hooks = x._backward_hooks
        assert type(hooks) is OrderedDict
        assert hooks[handle.id] is nothing
        state = [type(one).__name__ for one in handle.__getstate__()]
        again = pickle.loads(pickle.dumps(handle))
        assert again.id == handle.id
        handle.remove()
        return state, vars(handle).keys(), len(hooks)

    alone = registered()
    with gv.pytorch.record():
        assert registered() == alone


def test_a_handle_that_cannot_be_made_fails_as_without_a_recording():
    def failing():
        with pytest.raises(TypeError) as caught:
            torch.utils.hooks.RemovableHandle({})
        frames = traceback.extract_tb(caught.tb)
        return str(caught.value), [one.name for one in frames]

    alone = failing()
    with gv.pytorch.record():
        assert failing() == alone


def test_after_a_recording_handles_are_made_by_pytorch_alone():
    before = torch.utils.hooks.RemovableHandle.__init__
    with gv.pytorch.record():
        assert torch.utils.hooks.RemovableHandle.__init__ is not before
    assert torch.utils.hooks.RemovableHandle.__init__ is before


def test_a_hook_that_raises_is_named_and_has_no_time():
    def refuse(_):
        raise ValueError("mine")

    def program():
        x = leaf()
        y = x.sin()
        y.register_hook(nothing)
        z = y.exp()
        z.register_hook(refuse)
        with pytest.raises(ValueError, match="mine"):
            z.sum().backward()
        y.sum().backward()

    recording = recorded(program)
    assert [one.function for one in hook_calls(recording.trace)] == ["nothing"]


def test_the_hook_of_data_parallel_training_is_known_from_the_module():
    class DistributedDataParallel(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.module = torch.nn.Linear(3, 3)
            self._module_parameters = list(self.module.parameters())

        def forward(self, x):
            return self.module(x)

    model = DistributedDataParallel()
    calls = calls_of(lambda: model(leaf(2, 3)).sum().backward())
    assert [(one.kind, one.function, one.target) for one in calls] == [
        ("post", "C++ hook", "DistributedDataParallel")
    ] * 2


def test_a_hook_that_runs_a_pass_is_named_and_its_own_time_is_unknown():
    @torch.enable_grad()
    def again(_):
        leaf().sin().sum().backward()

    def program():
        y = leaf().sin()
        y.register_hook(again)
        y.sum().backward()

    (call,) = calls_of(program)
    assert call.function.endswith("again")
    assert call.took_ns is call.together_ns is None
