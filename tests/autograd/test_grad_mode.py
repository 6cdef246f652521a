import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import gradviz as gv
from gradviz import (
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
)


def test_no_graph_is_recorded_in_the_block():
    with gv.no_grad():
        assert not gv.is_grad_enabled()
        with gv.enable_grad():
            assert gv.is_grad_enabled()
        assert not gv.is_grad_enabled()
    assert gv.is_grad_enabled()


def test_an_error_restores_the_mode():
    try:
        with gv.no_grad():
            raise KeyError
    except KeyError:
        assert gv.is_grad_enabled()


def test_a_function_is_decorated():
    @gv.no_grad()
    def evaluate(x):
        """The result."""
        return x * 2

    assert evaluate(gv.ones(1, requires_grad=True)).grad_fn is None
    assert gv.is_grad_enabled()
    assert (evaluate.__name__, evaluate.__doc__) == ("evaluate", "The result.")


def test_one_object_may_be_entered_again_inside_itself():
    mode = gv.no_grad()

    with mode:
        with mode:
            pass
        assert not gv.is_grad_enabled()
    assert gv.is_grad_enabled()


def test_the_mode_is_set_from_the_call_on():
    gv.set_grad_enabled(False)
    try:
        assert not gv.is_grad_enabled()
    finally:
        gv.set_grad_enabled(True)
    assert gv.is_grad_enabled()


def test_the_mode_is_set_for_a_block():
    with gv.set_grad_enabled(False):
        assert not gv.is_grad_enabled()
    assert gv.is_grad_enabled()


def test_the_mode_is_set_for_a_function():
    @gv.set_grad_enabled(False)
    def mode():
        return gv.is_grad_enabled()

    assert gv.is_grad_enabled()
    assert mode() is False


def test_the_mode_belongs_to_its_thread():
    modes = []
    with gv.no_grad():
        thread = threading.Thread(target=lambda: modes.append(gv.is_grad_enabled()))
        thread.start()
        thread.join()

    assert modes == [True]


def test_hooks_run_with_gradients_off_unless_a_graph_is_created():
    x = gv.ones(1, requires_grad=True)
    modes = []
    x.register_hook(lambda grad: modes.append(gv.is_grad_enabled()))

    (x * 2).sum().backward()
    gv.autograd.grad((x * x).sum(), x, create_graph=True)

    assert modes == [False, True]


def test_a_function_is_decorated_without_parentheses():
    @no_grad
    def mode():
        return is_grad_enabled()

    assert mode() is False


def test_a_generator_has_the_mode_while_it_runs_and_nobody_else():
    seen = []

    @no_grad()
    def steps():
        for number in range(2):
            seen.append(is_grad_enabled())
            sent = yield number
            seen.append((sent, is_grad_enabled()))
        return "end"

    generator = steps()
    assert next(generator) == 0
    assert is_grad_enabled()
    assert generator.send("a") == 1
    with pytest.raises(StopIteration, match="end"):
        generator.send("b")

    assert seen == [False, ("a", False), False, ("b", False)]
    assert is_grad_enabled()


def test_an_error_thrown_into_a_generator_arrives_in_the_mode():
    seen = []

    @no_grad()
    def steps():
        try:
            yield
        except KeyError:
            seen.append(is_grad_enabled())
            yield "caught"

    generator = steps()
    next(generator)

    assert generator.throw(KeyError("x")) == "caught"
    assert seen == [False]


def test_a_coroutine_has_the_mode_across_an_await():
    async def pause():
        await asyncio.sleep(0)

    @no_grad()
    async def mode():
        await pause()
        return is_grad_enabled()

    async def both():
        return await asyncio.gather(mode(), other())

    async def other():
        await pause()
        return is_grad_enabled()

    assert asyncio.run(both()) == [False, True]


def test_a_class_is_decorated_with_a_warning():
    with pytest.warns(FutureWarning, match="Decorating classes is deprecated"):

        @no_grad()
        class Thing:
            def __init__(self):
                self.mode = is_grad_enabled()

    assert Thing().mode is False


class TestInferenceMode:
    def test_a_tensor_made_in_it_is_an_inference_tensor(self):
        with inference_mode():
            x = gv.ones(2)
            assert is_inference_mode_enabled()
            assert not is_grad_enabled()

        assert x.is_inference()
        assert not is_inference_mode_enabled()
        assert is_grad_enabled()

    def test_it_can_be_left_for_a_block(self):
        with inference_mode(), inference_mode(mode=False):
            assert is_grad_enabled()
            assert not gv.ones(2).is_inference()

    def test_it_decorates_with_and_without_parentheses(self):
        @inference_mode
        def bare():
            return gv.ones(1).is_inference()

        @inference_mode()
        def called():
            return gv.ones(1).is_inference()

        assert bare()
        assert called()

    def test_it_belongs_to_its_thread(self):
        with inference_mode(), ThreadPoolExecutor(1) as pool:
            assert not pool.submit(is_inference_mode_enabled).result()


def test_changes_may_go_uncounted():
    x = gv.ones(2, requires_grad=True)
    y = x * 1
    loss = (y * y).sum()

    with gv.autograd._unsafe_preserve_version_counter(y):
        with gv.no_grad():
            y.mul_(3)
        assert y._version == 1
    loss.backward()

    assert y._version == 0
    assert x.grad.tolist() == [6.0, 6.0]
