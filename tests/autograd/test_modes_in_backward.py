"""A mode that a node changes is what it was for the next one, and for the caller."""

import functools
from collections.abc import Callable, Iterator
from contextvars import ContextVar, copy_context
from typing import Any

import pytest

import gradviz as gv
from gradviz.autograd import (
    inference_mode,
    is_inference_mode_enabled,
    mutation,
    set_multithreading_enabled,
)
from gradviz.autograd.graph import (
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    node_creation_hook,
    saved_tensors_hooks,
)
from gradviz.checkpointing import frame
from gradviz.engine import Engine, default_engine, set_default_engine
from gradviz.engine.graph.grad_mode import is_multithreading_enabled
from gradviz.ops.dispatch import creation_hooks
from gradviz.ops.variables import inference, saved_variable, view

#: What a test has entered and not left.
ENTERED: list[Any] = []


def enter(make: Callable[..., Any], *args: Any) -> Callable[[], None]:
    def change() -> None:
        block = make(*args)
        block.__enter__()
        ENTERED.append(block)

    return change


def same(x: Any) -> Any:
    return x


CHANGES = {
    "inference mode": enter(inference_mode),
    "saved-tensor hooks": enter(saved_tensors_hooks, same, same),
    "no saved-tensor hooks": enter(disable_saved_tensors_hooks, "refused"),
    "saved tensors may change": enter(allow_mutation_on_saved_tensors),
    "creation hooks": enter(node_creation_hook, lambda node: None),
    "multithreading": functools.partial(set_multithreading_enabled, False),
    "view tracking": functools.partial(view._TRACKS.set, True),
    "gradient mode": functools.partial(gv.set_grad_enabled, True),
    "default device": functools.partial(gv.set_default_device, "meta"),
    "a device's block": enter(gv.device, "meta"),
    "checkpoints share": enter(gv.utils.checkpoint.GraphExecGroup),
}


def state() -> dict[str, Any]:
    """Return the observable state of all modes."""
    return {
        "inference mode": is_inference_mode_enabled(),
        "saving": saved_variable._SAVING.get(),
        "mutation": mutation._CURRENT.get(),
        "creation hooks": creation_hooks._HOOKS.get(),
        "multithreading": is_multithreading_enabled(),
        "view tracking": view._TRACKS.get(),
        "gradient mode": gv.is_grad_enabled(),
        "device": str(gv.get_default_device()),
        "group": frame._GROUP.get(),
    }


@pytest.fixture(autouse=True)
def leave_no_block(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = state()
    monkeypatch.setattr(creation_hooks, "CREATION_HOOKS_IN_USE", [])
    yield
    copy_context().run(ENTERED.clear)  # which leaves those that are generators
    assert state() == before


@pytest.fixture(params=CHANGES)
def change(request: pytest.FixtureRequest) -> Callable[[], None]:
    return CHANGES[request.param]


@pytest.fixture
def x() -> gv.Tensor:
    return gv.ones(2, requires_grad=True)


def hooked(x: gv.Tensor, hook: Callable[[], object]) -> gv.Tensor:
    y = x * 2
    y.register_hook(lambda grad: hook() and None)
    return y


class TestEveryNodeStartsWithThePassesState:
    def test_a_mode_that_a_hook_changed_is_reset_for_the_next_node(self, change, x):
        seen = []
        y = hooked(hooked(x, lambda: seen.append(state())), change)

        y.sum().backward()

        assert seen == [{**state(), "gradient mode": False}]

    def test_a_mode_that_a_function_changed_is_reset_for_the_next_node(self, change, x):
        class Leaky(gv.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 1

            @staticmethod
            def backward(ctx, grad):
                change()
                return grad

        seen = []
        y = hooked(x, lambda: seen.append(state()))

        Leaky.apply(y).sum().backward()

        assert seen == [{**state(), "gradient mode": False}]

    def test_a_mode_that_a_failing_node_changed_is_reset_for_the_caller(
        self, change, x
    ):
        def hook():
            change()
            raise KeyError

        before = state()
        with pytest.raises(KeyError):
            hooked(x, hook).sum().backward()

        assert state() == before

    def test_a_callback_starts_so_as_well(self, change, x):
        seen = []

        def hook():
            change()
            default_engine().queue_callback(lambda: seen.append(state()))

        x.register_hook(lambda grad: hook())
        (x * 2).sum().backward()

        assert seen == [{**state(), "gradient mode": False}]

    def test_the_callers_own_modes_hold_in_every_node(self, change, x):
        """Those of a block around the call, although a node leaves it."""
        blocks = [saved_tensors_hooks(same, same), gv.device("meta")]
        seen = []

        def hook():
            seen.append(state())
            change()

        y = hooked(hooked(x, hook), hook)
        with blocks[0], blocks[1]:
            within = {**state(), "gradient mode": False}
            if change is CHANGES["no saved-tensor hooks"]:
                pytest.skip("refused where there are hooks")
            if change is CHANGES["checkpoints share"]:
                pytest.skip("entered before")
            y.backward(gv.ones(2, device="cpu"))

        assert seen == [within, within]

    def test_modes_hold_from_a_pre_hook_to_the_post_hook_of_the_same_node(self, x):
        seen = []
        y = x * 2
        y.grad_fn.register_prehook(lambda grads: CHANGES["inference mode"]())
        y.grad_fn.register_hook(lambda *_: seen.append(is_inference_mode_enabled()))

        y.sum().backward()

        assert seen == [True]
        assert not is_inference_mode_enabled()


class TestTheCallerGetsItsOwnBack:
    def test_after_a_callback(self, change, x):
        before = state()
        x.register_hook(lambda grad: default_engine().queue_callback(change))

        (x * 2).sum().backward()

        assert state() == before

    def test_a_node_that_calls_backward_keeps_its_own(self, change, x):
        """The inner pass begins with them; the outer one has others."""
        seen = []

        def inner():
            with gv.enable_grad(), inference_mode(False):
                z = gv.ones(2, requires_grad=True, device="cpu") * 3
            z.register_hook(lambda grad: seen.append(state()))
            z.backward(gv.ones(2, device="cpu"))

        def hook():
            change()
            seen.append(state())
            inner()
            seen.append(state())

        y = hooked(hooked(x, lambda: seen.append(state())), hook)
        y.sum().backward()

        before_call, in_inner, after_call, later = seen
        assert in_inner == {**before_call, "gradient mode": False}
        assert after_call == before_call
        assert later == {**state(), "gradient mode": False}

    def test_a_mode_that_an_inner_pass_changed_is_reset_for_its_caller(self, change, x):
        seen = []

        def hook():
            before = state()
            with gv.enable_grad():
                hooked(gv.ones(2, requires_grad=True), change).sum().backward()
            seen.append(state() == before)

        hooked(x, hook).sum().backward()

        assert seen == [True]


def test_nodes_of_two_nested_passes_each_have_their_own_modes(x):
    """A nested loop may run nodes of the outer pass, in between its own."""
    engine, before = Engine(schedule="fifo"), default_engine()
    set_default_engine(engine)
    try:
        seen = []

        def inner():
            CHANGES["inference mode"]()
            with gv.enable_grad(), inference_mode(False):
                z = gv.ones(2, requires_grad=True)
                for _ in range(3):
                    z = hooked(
                        z, lambda: seen.append(("inner", is_inference_mode_enabled()))
                    )
                total = z.sum()
            total.backward()

        branches = [
            hooked(x, lambda: seen.append(("outer", is_inference_mode_enabled())))
            for _ in range(3)
        ]
        hooked(branches[0], inner).add(branches[1]).add(branches[2]).sum().backward()
    finally:
        set_default_engine(before)

    kinds = [kind for kind, _ in seen]
    assert kinds.index("outer") < len(kinds) - 1 - kinds[::-1].index("inner")
    assert set(seen) == {("inner", True), ("outer", False)}


def test_a_block_may_be_entered_in_one_node_and_left_in_another(x):
    """Of a device and of the CPU: in two contexts."""
    block = inference_mode()
    y = hooked(hooked(x, lambda: block.__exit__(None, None, None)).to("sim"), same_0)
    y.register_hook(lambda grad: block.__enter__() and None)

    y.sum().backward()

    assert x.grad.tolist() == [4.0, 4.0]
    assert not is_inference_mode_enabled()


def same_0() -> None:
    pass


def test_saved_tensor_hooks_that_a_backward_took_away_cannot_be_left(x):
    block = saved_tensors_hooks(same, same)
    hooked(x, block.__enter__).sum().backward()

    with pytest.raises(RuntimeError, match="entered in a backward"):
        block.__exit__(None, None, None)


def test_a_users_own_context_variables_are_the_users(x):
    """On the caller's thread a node changes them, as any call would (C22)."""
    variable: ContextVar[int] = ContextVar("variable", default=0)

    hooked(x, lambda: variable.set(1)).sum().backward()

    assert variable.get() == 1


def test_a_caller_in_inference_mode_is_in_it_still_when_a_node_left_its_block(x):
    y = x * 2
    block = inference_mode()
    y.register_hook(lambda _: block.__exit__(None, None, None))
    total = y.sum()
    before = inference._INNERMOST.get()
    others = set(
        inference.INFERENCE_BLOCKS
    )  # of contexts that nobody has collected yet

    block.__enter__()
    try:
        total.backward()

        assert is_inference_mode_enabled()
        assert gv.ones(2).is_inference()
    finally:
        inference._INNERMOST.set(before)
        gv.set_grad_enabled(True)

    assert others >= inference.INFERENCE_BLOCKS
