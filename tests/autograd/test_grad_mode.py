import threading

import gradviz as gv


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
