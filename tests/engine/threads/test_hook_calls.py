"""The hooks of a node: their order, what they see, and what they may return."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gradviz.engine import AccumulateGrad, Edge, Engine, Node
from tests.engine.nodes import Call, Leaf, Pass, Sink, raiser


def hooked(node: Node, **hooks: Any) -> Node:
    """`node` with hooks: `tensor_pre`, `pre` and `post` sequences, `retains_grad`."""
    its_own = node.hooks_to_add_to()
    for kind, value in hooks.items():
        setattr(its_own, kind, value)
    return node


def noting(log: list[str], label: str) -> Callable[..., None]:
    def hook(*values: Any) -> None:
        log.append(label)

    return hook


def all_kinds(log: list[str], node: Node, name: str) -> Node:
    return hooked(
        node,
        tensor_pre=((0, noting(log, f"{name}.tensor")),),
        retains_grad={0: noting(log, f"{name}.retains_grad")},
        pre=(noting(log, f"{name}.pre"),),
        post=(noting(log, f"{name}.post"),),
    )


def run(engine: Engine, root: Node, *inputs: Any, **settings: Any) -> Any:
    return engine.execute([(root, 0)], inputs or [1.0], **settings)


class TestOrder:
    def test_tensor_hooks_then_retained_then_pre_then_the_node_then_post(
        self, engine: Engine
    ):
        """E2."""
        log: list[str] = []
        root = all_kinds(log, Pass(log=log, label="node"), "a")

        run(engine, root)

        assert log == ["a.tensor", "a.retains_grad", "a.pre", "node", "a.post"]

    def test_a_leafs_own_hooks_run_after_the_update_and_before_its_post_hooks(
        self, engine: Engine
    ):
        """G5, C13."""
        log: list[str] = []
        leaf = AccumulateGrad(Leaf())
        leaf.post_hooks = (noting(log, "a.postacc"),)
        all_kinds(log, leaf, "acc")
        root = all_kinds(log, Pass(leaf), "b")

        run(engine, root)

        assert log == [
            *("b.tensor", "b.retains_grad", "b.pre", "b.post"),
            *("acc.tensor", "acc.retains_grad", "acc.pre", "a.postacc", "acc.post"),
        ]

    def test_hooks_of_one_kind_run_in_order_of_registration(self, engine: Engine):
        """E2."""
        log: list[str] = []
        one, two = noting(log, "one"), noting(log, "two")
        root = hooked(
            Sink(),
            tensor_pre=((0, one), (0, two)),
            pre=(one, two),
            post=(one, two),
        )

        run(engine, root)

        assert log == ["one", "two"] * 3

    def test_the_hooks_of_a_node_that_is_not_needed_do_not_run(self, engine: Engine):
        """I6, G6: neither of the branch that leads nowhere."""
        log: list[str] = []
        wanted, other = Sink(), all_kinds(log, Sink(), "other")

        run(
            engine,
            Pass(wanted, other),
            accumulate_grad=False,
            outputs=[Edge(wanted)],
        )

        assert log == []

    def test_a_node_captured_but_not_run_has_its_tensor_hooks_called(
        self, engine: Engine
    ):
        """I5, G6: `grad(c, (b,))`."""
        log: list[str] = []
        b = all_kinds(log, Sink(), "b")

        run(engine, Pass(b), accumulate_grad=False, outputs=[Edge(b)])

        assert log == ["b.tensor", "b.retains_grad"]

    def test_a_node_captured_and_run_has_all_hooks_called(self, engine: Engine):
        """I5, G6: `grad(c, (a, b))`, b on the way to a."""
        log: list[str] = []
        a = all_kinds(log, AccumulateGrad(Leaf()), "a")
        b = all_kinds(log, Pass(a), "b")

        run(engine, Pass(b), accumulate_grad=False, outputs=[Edge(a), Edge(b)])

        assert log == [
            *("b.tensor", "b.retains_grad", "b.pre", "b.post"),
            *("a.tensor", "a.retains_grad"),
        ]

    def test_an_output_of_backward_is_run_with_all_its_hooks(self, engine: Engine):
        """I2, G6: `backward(inputs=(b,))`; what lies beyond is not reached."""
        log: list[str] = []
        a = all_kinds(log, AccumulateGrad(Leaf()), "a")
        b = all_kinds(log, Pass(a), "b")

        run(engine, Pass(b), outputs=[Edge(b)])

        assert log == ["b.tensor", "b.retains_grad", "b.pre", "b.post"]


class TestValues:
    def test_a_tensor_hook_replaces_the_gradient_of_its_input(self, engine: Engine):
        """E2: what one returns is what the next one sees."""
        sink = Sink(inputs=2)
        hooked(
            sink,
            tensor_pre=((1, lambda grad: grad * 10), (1, lambda grad: grad + 1)),
        )

        run(engine, Pass(sink, Edge(sink, 1)), 2.0)

        assert sink.received == [(2.0, 21.0)]

    def test_a_retaining_hook_sees_what_the_tensor_hooks_left(self, engine: Engine):
        """E2."""
        kept: list[float] = []
        root = hooked(
            Sink(),
            tensor_pre=((0, lambda grad: grad * 10),),
            retains_grad={0: kept.append},
        )

        run(engine, root, 2.0)

        assert kept == [20.0]

    def test_a_pre_hook_replaces_all_gradients(self, engine: Engine):
        """E2."""
        sink = hooked(Sink(inputs=2), pre=(lambda grads: (grads[0] * 3, 7.0),))

        run(engine, Pass(sink, Edge(sink, 1)), 2.0)

        assert sink.received == [(6.0, 7.0)]

    def test_a_post_hook_sees_what_went_in_and_replaces_what_came_out(
        self, engine: Engine
    ):
        """E2."""
        seen: list[Any] = []
        sink = Sink()

        def hook(outputs: Any, inputs: Any) -> Any:
            seen.append((outputs, inputs))
            return (100.0,)

        run(engine, hooked(Pass(sink, factor=3), post=(hook,)), 2.0)

        assert seen == [((6.0,), (2.0,))]
        assert sink.received == [(100.0,)]

    def test_the_post_hook_of_a_leaf_sees_no_outputs_and_one_input(
        self, engine: Engine
    ):
        """G5: acc.post sees 0 grad_inputs and 1 grad_output."""
        seen: list[Any] = []
        leaf = hooked(
            AccumulateGrad(Leaf()),
            post=(lambda outputs, inputs: seen.append((outputs, inputs)),),
        )

        run(engine, Pass(leaf), 2.0)

        assert seen == [((), (2.0,))]

    def test_every_hook_runs_for_an_undefined_gradient_too(self, engine: Engine):
        """E3, E9."""
        seen: list[Any] = []
        sink = hooked(
            Sink(),
            tensor_pre=((0, seen.append),),
            retains_grad={0: seen.append},
            pre=(seen.append,),
            post=(lambda outputs, inputs: seen.append(inputs),),
        )

        run(engine, Call(lambda _: (None,), sink))

        assert seen == [None, None, (None,), (None,)]

    def test_a_captured_gradient_has_gone_through_the_tensor_hooks(
        self, engine: Engine
    ):
        """I5, G6: `grad(c, (b,))` returns 10."""
        b = hooked(Sink(), tensor_pre=((0, lambda grad: grad * 10),))

        captured = run(engine, Pass(b), accumulate_grad=False, outputs=[Edge(b)])

        assert captured == (10.0,)

    def test_a_captured_gradient_of_a_node_that_runs_is_raw(self, engine: Engine):
        """I5, G6: `grad(c, (b, a))` returns b=1, a=20."""
        a = Sink()
        b = hooked(Pass(a, factor=2), tensor_pre=((0, lambda grad: grad * 10),))

        captured = run(
            engine, Pass(b), accumulate_grad=False, outputs=[Edge(b), Edge(a)]
        )

        assert captured == (1.0, 20.0)


class TestSnapshot:
    @pytest.mark.parametrize("kind", ["tensor_pre", "pre", "post"])
    def test_a_hook_removed_by_an_earlier_one_still_runs_this_time(
        self, engine: Engine, kind: str
    ):
        """E3."""
        log: list[str] = []
        sink = Sink()

        def remove(*values: Any) -> None:
            log.append("first")
            assert sink.hooks is not None
            setattr(sink.hooks, kind, ())

        hooks: tuple[Any, ...] = (remove, noting(log, "second"))
        if kind == "tensor_pre":
            hooks = tuple((0, hook) for hook in hooks)
        hooked(sink, **{kind: hooks})

        run(engine, sink)
        run(engine, sink)

        assert log == ["first", "second"]

    def test_a_hook_added_to_its_own_kind_runs_from_the_next_time(self, engine: Engine):
        """E3."""
        log: list[str] = []
        sink = Sink()

        def add(grads: Any) -> None:
            log.append("first")
            assert sink.hooks is not None
            sink.hooks.pre = (add, noting(log, "added"))

        hooked(sink, pre=(add,))

        run(engine, sink)
        assert log == ["first"]
        run(engine, sink)
        assert log == ["first", "first", "added"]

    @pytest.mark.usefixtures("_perhaps_listened")
    def test_a_post_hook_registered_while_the_node_runs_is_called_and_sees_nothing(
        self, engine: Engine
    ):
        """C7."""
        seen: list[Any] = []

        def apply(grad: float) -> Any:
            hooked(root, post=(lambda outputs, inputs: seen.append((outputs, inputs)),))
            return (grad,)

        root = Call(apply, Sink())

        run(engine, root, 2.0)

        assert seen == [((2.0,), (None,))]


class TestWrongReturns:
    """G16, F07."""

    ARRAY = np.ones(3)

    def refusal(self, engine: Engine, node: Node) -> BaseException:
        with pytest.raises((RuntimeError, TypeError)) as caught:
            run(engine, node, self.ARRAY)
        return caught.value

    @pytest.mark.parametrize(
        "hooks",
        [
            {"tensor_pre": ((0, lambda _: "text"),)},
            {"retains_grad": {0: lambda _: "text"}},
        ],
        ids=["tensor_pre", "retains_grad"],
    )
    def test_a_hook_that_returns_no_gradient_is_refused(
        self, engine: Engine, hooks: dict[str, Any]
    ):
        """G16."""
        error = self.refusal(engine, hooked(Sink(), **hooks))

        assert isinstance(error, TypeError)
        assert str(error) == "expected Variable, but hook returned 'str'"

    def test_a_hook_that_changes_the_shape_is_named(self, engine: Engine):
        """G16."""
        error = self.refusal(
            engine, hooked(Sink(), tensor_pre=((0, lambda grad: grad[:2]),))
        )

        assert str(error) == "hook '<lambda>' has changed the size of value"

    def test_a_pre_hook_must_return_one_value_for_each_input(self, engine: Engine):
        """G16."""

        def too_many(grads: Any) -> Any:
            return (*grads, *grads)

        error = self.refusal(engine, hooked(Sink(), pre=(too_many,)))

        assert str(error) == (
            "hook 'too_many' has returned an incorrect number of values "
            "(got 2, but expected 1)"
        )

    def test_a_post_hook_must_return_one_value_for_each_output(self, engine: Engine):
        """G16."""
        root = Call(lambda grad: (grad, grad), Sink(), Sink())

        error = self.refusal(
            engine, hooked(root, post=(lambda outputs, _: (*outputs, None),))
        )

        assert str(error) == (
            "hook '<lambda>' has returned an incorrect number of values "
            "(got 3, but expected 2)"
        )

    def test_a_post_hook_that_changes_a_shape_is_named(self, engine: Engine):
        """G16."""
        root = hooked(Pass(Sink()), post=(lambda outputs, _: (outputs[0][:1],),))

        error = self.refusal(engine, root)

        assert str(error) == "hook '<lambda>' has changed the size of value"

    def test_a_single_value_stands_for_a_tuple_of_one(self, engine: Engine):
        sink = hooked(Sink(), pre=(lambda grads: grads[0] * 2,))

        run(engine, sink, 3.0)

        assert sink.received == [(6.0,)]

    def test_a_hook_without_a_name_is_called_by_its_class(self, engine: Engine):
        class Halving:
            def __call__(self, grad: Any) -> Any:
                return grad[:1]

        error = self.refusal(engine, hooked(Sink(), tensor_pre=((0, Halving()),)))

        assert "hook 'Halving' has changed the size" in str(error)

    def test_an_error_of_a_leafs_hook_says_of_which_node(self, engine: Engine):
        """C13: as the errors of all others."""
        node, error = AccumulateGrad(Leaf()), ValueError("mine")
        node.post_hooks = (lambda leaf: None, raiser(error))

        with pytest.raises(ValueError, match="mine"):
            run(engine, node)

        assert error.__notes__ == [f"in post_accumulate_grad hook 1 of {node!r}"]

    @pytest.mark.parametrize("kind", ["tensor_pre", "retains_grad", "pre", "post"])
    def test_an_error_of_a_hook_is_the_error_of_the_pass(
        self, engine: Engine, kind: str
    ):
        """F07: the very object, and the engine works afterwards."""
        error, sink = ValueError("mine"), Sink()
        hook = raiser(error)
        hooks: dict[str, Any] = {
            "tensor_pre": ((0, hook),),
            "retains_grad": {0: hook},
            "pre": (hook,),
            "post": (hook,),
        }

        node = hooked(Pass(sink), **{kind: hooks[kind]})
        with pytest.raises(ValueError, match="mine") as caught:
            run(engine, node)

        assert caught.value is error
        assert error.__notes__ == [f"in {kind} hook 0 of {node!r}"]
        assert sink.received == []
        run(engine, Pass(sink), 2.0)
        assert sink.received == [(2.0,)]

    @pytest.mark.parametrize("kind", ["tensor_pre", "pre", "post"])
    def test_a_hook_may_call_backward(self, engine: Engine, kind: str):
        """F07."""
        inner, outer = Sink(), Sink()

        def hook(*values: Any) -> None:
            run(engine, Pass(inner), 5.0)

        hooks: Any = ((0, hook),) if kind == "tensor_pre" else (hook,)

        run(engine, hooked(Pass(outer), **{kind: hooks}), 2.0)

        assert (inner.received, outer.received) == ([(5.0,)], [(2.0,)])
