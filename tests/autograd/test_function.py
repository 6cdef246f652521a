"""Custom functions; PyTorch's part is in tests/parity/test_function.py."""

import gc
import weakref

import pytest

import gradviz as gv
from gradviz import nn
from gradviz.autograd import Function, graph
from gradviz.autograd.function import FunctionCtx, InplaceFunction, once_differentiable
from gradviz.trace import probe


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 3 * x * x * grad


class Scale(Function):
    """New style: `setup_context` fills the context."""

    @staticmethod
    def forward(x, factor=2.0):
        return x * factor

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.factor = inputs[1]

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor, None


class Double(Function):
    """In place."""

    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


class Parts(Function):
    """Two outputs, and one that is no tensor."""

    materialize = True

    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(Parts.materialize)
        return x.sin(), "word", x.cos()

    @staticmethod
    def backward(ctx, *grads):
        ctx.seen.append([grad if grad is None else grad.tolist() for grad in grads])
        return grads[0]


@pytest.fixture
def x():
    return gv.tensor([1.0, 2.0], requires_grad=True)


def returning(result):
    """A function of one tensor whose backward returns `result`."""

    class Returning(Function):
        @staticmethod
        def forward(ctx, x, *others):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return result(grad)

    return Returning


def test_its_backward_takes_the_place_of_the_derivative(x):
    y = Cube.apply(x)
    y.sum().backward()

    assert y.tolist() == [1.0, 8.0]
    assert x.grad.tolist() == [3.0, 12.0]


def test_its_backward_is_differentiated_like_any_other_code(x):
    (first,) = gv.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
    (second,) = gv.autograd.grad(first.sum(), x, create_graph=True)
    (third,) = gv.autograd.grad(second.sum(), x)

    assert second.tolist() == [6.0, 12.0]
    assert third.tolist() == [6.0, 6.0]


def test_a_saved_result_keeps_no_graph_alive(x):
    """Without any help from the garbage collector."""

    class Exp(Function):
        @staticmethod
        def forward(ctx, x):
            result = x.exp()
            ctx.save_for_backward(result)
            return result

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[0]

    gc.disable()
    try:
        y = Exp.apply(x)
        assert y.grad_fn.saved_tensors[0].grad_fn is y.grad_fn
        node = weakref.ref(y.grad_fn)
        del y
        assert node() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("args", "kwargs", "factor"),
    [((), {}, 2.0), ((3.0,), {}, 3.0), ((), {"factor": 4.0}, 4.0)],
)
def test_a_context_may_be_set_up_apart_with_defaults_and_keywords(
    x, args, kwargs, factor
):
    """C18."""
    y = Scale.apply(x, *args, **kwargs)
    y.sum().backward()

    assert y.grad_fn.needs_input_grad == (True, False)
    assert x.grad.tolist() == [factor, factor]


@pytest.mark.parametrize(
    ("materialize", "missing"), [(True, [0.0, 0.0]), (False, None)]
)
def test_gradients_that_did_not_come_are_zeros_or_none(
    x, monkeypatch, materialize, missing
):
    monkeypatch.setattr(Parts, "materialize", materialize)
    first, word, second = Parts.apply(x)
    first.grad_fn.seen = []
    first.sum().backward()

    assert word == "word"
    assert second.output_nr == 2
    assert first.grad_fn.seen == [[[1.0, 1.0], None, missing]]


def test_a_non_differentiable_output_is_no_part_of_the_graph(x):
    class Largest(Function):
        @staticmethod
        def forward(ctx, x):
            index = x.argmax()
            ctx.mark_non_differentiable(index)
            return x.max(), index

        @staticmethod
        def backward(ctx, grad, _):
            return grad * gv.tensor([0.0, 1.0])

    value, index = Largest.apply(x)
    value.backward()

    assert not index.requires_grad
    assert x.grad.tolist() == [0.0, 1.0]


def test_a_tensor_that_is_changed_in_place_moves_in_the_graph(x):
    y = x.clone()
    z = Double.apply(y)
    z.sum().backward()

    assert z is y
    assert y.grad_fn.name() == "DoubleBackward"
    assert x.grad.tolist() == [2.0, 2.0]


def test_a_view_that_is_changed_in_place_changes_its_base(x):
    y = x.clone()
    Double.apply(y[:1])
    y.sum().backward()

    assert y.tolist() == [2.0, 2.0]
    assert x.grad.tolist() == [2.0, 1.0]


def test_an_input_that_is_returned_becomes_another_tensor_on_its_memory(x):
    class Reverse(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad):
            return -grad

    y = Reverse.apply(x)
    y.sum().backward()

    assert y is not x
    assert x.is_leaf
    assert x.grad.tolist() == [-1.0, -1.0]


def test_the_context_is_the_node(x):
    contexts = []

    class Kept(Function):
        @staticmethod
        def forward(ctx, x):
            contexts.append(ctx)
            ctx.mine = 3
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            contexts.append(ctx)
            return grad

    y = Kept.apply(x)
    y.sum().backward()

    assert contexts == [y.grad_fn] * 2
    assert y.grad_fn.mine == 3
    assert type(y.grad_fn).__name__ == "KeptBackward"
    assert isinstance(y.grad_fn, FunctionCtx)
    assert isinstance(y.grad_fn, graph.Node)
    with pytest.raises(AttributeError):
        y.grad_fn.nobodys  # noqa: B018 - for its effect


def test_a_context_may_store_a_device_a_module_and_a_name_of_its_own(x):
    class Busy(Function):
        @staticmethod
        def forward(ctx, x):
            assert (str(ctx.device), ctx.module) == ("cpu", "")
            ctx.device, ctx.module, ctx.name = "sim:0", nn.Linear(1, 1), "named"
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            assert (ctx.device, ctx.name) == ("sim:0", "named")
            return grad * 2

    with gv.record() as recording:
        Busy.apply(x).sum().backward()

    assert x.grad.tolist() == [2.0, 2.0]
    nodes = recording.trace.nodes.values()
    assert "BusyBackward" in {node.name for node in nodes}


@pytest.mark.parametrize(
    "name", ["id", "hooks", "call", "next_edges", "sequence_nr", "input_metadata"]
)
def test_a_context_refuses_attributes_that_the_engine_relies_on(x, name):
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            setattr(ctx, name, 1)

    with pytest.raises(AttributeError, match=f"ctx.{name} is part of the node"):
        Wrong.apply(x)


def test_its_backward_may_be_asked_for_what_it_returns(x):
    y = Cube.apply(x)

    assert y.grad_fn.apply(gv.ones(2)).tolist() == [3.0, 12.0]


def test_hooks_may_be_registered_on_its_node(x):
    y = Cube.apply(x)
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 10,))
    y.grad_fn.register_hook(lambda returned, given: (returned[0] + given[0],))
    y.sum().backward()

    assert x.grad.tolist() == [40.0, 130.0]


def test_without_gradient_mode_nothing_is_recorded_or_saved(x):
    contexts = []

    class Kept(Function):
        @staticmethod
        def forward(ctx, x):
            contexts.append(ctx)
            ctx.save_for_backward(x)
            return x * 2

    with gv.no_grad():
        y = Kept.apply(x)

    assert not y.requires_grad
    assert contexts[0].saved_tensors == ()
    assert contexts[0].next_functions == ()
    assert contexts[0].needs_input_grad == (True,)


def test_it_runs_where_its_outputs_are():
    devices = []

    class There(Function):
        @staticmethod
        def forward(ctx, x):
            return x.to("sim:0")

        @staticmethod
        def backward(ctx, grad):
            devices.append(str(grad.device))
            return grad.cpu()

    x = gv.ones(2, requires_grad=True)
    y = There.apply(x)
    y.sum().backward()

    assert str(y.grad_fn.device) == "sim:0"
    assert devices == ["sim:0"]
    assert x.grad.tolist() == [1.0, 1.0]


def test_the_bytes_that_a_function_saves_are_reported(x):
    saved = []

    class Listener(probe.Probe):
        def tensor_saved(self, node, size_bytes):
            saved.append(size_bytes)

    with probe.installed(Listener()):
        Cube.apply(x * 1)

    assert saved == [8]


def test_a_creation_hook_sees_its_node(x):
    seen = []
    with graph.node_creation_hook(lambda node: seen.append(node.name())):
        Scale.apply(x)

    assert seen == ["ScaleBackward"]


def test_a_once_differentiable_backward_cannot_be_differentiated_twice(x):
    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @once_differentiable
        def backward(ctx, grad):
            assert not gv.is_grad_enabled()
            return grad * 2

    y = Once.apply(x)
    (first,) = gv.autograd.grad((y * y).sum(), x, create_graph=True)

    assert first.tolist() == [8.0, 16.0]
    with pytest.raises(RuntimeError, match="marked with @once_differentiable"):
        first.sum().backward()


@pytest.mark.parametrize(
    ("result", "others", "message"),
    [
        (
            lambda grad: (grad, grad),
            (),
            (
                r"^function ReturningBackward returned an incorrect number of "
                r"gradients \(expected 1, got 2\)$"
            ),
        ),
        (lambda grad: (), (), r"\(expected 1, got 0\)"),
        (lambda grad: 1.0, (), r"^expected Variable or None \(got float\)$"),
        (lambda grad: [grad], (), r"^expected Variable or None \(got list\)$"),
        (
            lambda grad: (grad, grad),
            (3,),
            (
                r"returned a gradient different than None at position 2, but the "
                r"corresponding forward input was not a Variable"
            ),
        ),
        (lambda grad: gv.ones(3), (), r"got \[3\] but expected shape compatible with"),
    ],
)
def test_wrong_gradients_are_pytorchs_errors(x, result, others, message):
    y = returning(result).apply(x, *others)

    with pytest.raises(RuntimeError, match=message):
        y.sum().backward()


def test_a_gradient_of_none_is_none(x):
    returning(lambda grad: None).apply(x).sum().backward()

    assert x.grad is None


def test_a_freed_graph_cannot_run_a_second_time(x):
    y = Cube.apply(x).sum()
    y.backward()

    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()


def test_a_saved_tensor_may_get_hooks_but_a_saved_none_may_not(x):
    class Kept(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, None)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            assert ctx.saved_tensors[1] is None
            return grad * ctx.saved_tensors[0]

    y = Kept.apply(x)
    tensor, none = y.grad_fn._raw_saved_tensors
    tensor.register_hooks(lambda saved: saved * 10, lambda packed: packed)

    with pytest.raises(RuntimeError, match="with value None is forbidden"):
        none.register_hooks(print, print)
    for saved in (tensor, none):
        with pytest.raises(TypeError, match="incompatible function arguments"):
            saved.register_hooks(print)
    y.sum().backward()
    assert x.grad.tolist() == [10.0, 20.0]


def test_a_function_that_saves_nothing_may_run_backward_twice(x):
    y = Scale.apply(x).sum()
    y.backward()
    y.backward()

    assert x.grad.tolist() == [4.0, 4.0]


def test_a_freed_node_refuses_its_saved_tensors_even_if_it_saved_none(x):
    y = Scale.apply(x)
    y.sum().backward()

    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.grad_fn.saved_tensors  # noqa: B018 - for its effect


def test_a_tensor_that_changed_after_it_was_saved_is_refused(x):
    y = x * 1
    z = Cube.apply(y)
    y.add_(1)

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


@pytest.mark.parametrize(
    ("forward", "error", "message"),
    [
        (lambda ctx, x: ctx.mark_dirty(x) or x, RuntimeError, "a leaf Variable that"),
        (
            lambda ctx, x: ctx.mark_dirty(x) or x * 2,
            RuntimeError,
            "marked as dirty during the forward method were not returned",
        ),
        (
            lambda ctx, x: ctx.save_for_backward(3) or x * 2,
            TypeError,
            "save_for_backward can only save variables, but argument 0 is of type int",
        ),
        (lambda ctx, x: ctx.mark_dirty(3) or x, TypeError, "mark_dirty can only"),
        (
            lambda ctx, x: ctx.mark_non_differentiable(3) or x,
            TypeError,
            "mark_non_differentiable only accepts",
        ),
        (
            lambda ctx, x: ctx.save_for_forward(3) or x,
            AssertionError,
            "save_for_forward expects all arguments to be tensors",
        ),
    ],
)
def test_a_wrong_forward_is_pytorchs_error(x, forward, error, message):
    wrong = type("Wrong", (Function,), {"forward": staticmethod(forward)})

    with pytest.raises(error, match=message):
        wrong.apply(x)


def test_a_method_that_a_function_does_not_define_raises_not_implemented_error(x):
    forwards = type("Forwards", (Function,), {"forward": staticmethod(lambda c, x: x)})

    with pytest.raises(NotImplementedError, match="must implement the forward"):
        type("Nothing", (Function,), {}).apply(x)
    with pytest.raises(NotImplementedError, match="either the backward or vjp"):
        forwards.apply(x).sum().backward()
    for method in ("jvp", "vmap", "setup_context"):
        with pytest.raises(NotImplementedError):
            getattr(Function, method)(None, None, None)


def test_instances_are_of_no_use(x):
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        instance = Cube()
    with pytest.raises(RuntimeError, match="Legacy autograd function"):
        instance(x)
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        assert InplaceFunction(inplace=True).inplace
