"""The first and the last nodes of a pass."""

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from gradviz.engine import AccumulateGrad, Edge, Engine, GraphRoot
from gradviz.engine.graph.grad_mode import GRAD_ENABLED
from gradviz.engine.graph.node import NodeHooks
from gradviz.trace import probe
from gradviz.trace.probe import How
from tests.engine.nodes import Call, Leaf, Listener, Money, Pass, Sink, start_thread


@pytest.fixture
def no_grad() -> Iterator[None]:
    """Gradient mode as a pass without ``create_graph`` has it."""
    token = GRAD_ENABLED.set(False)
    yield
    GRAD_ENABLED.reset(token)


def test_a_graph_root_hands_each_root_its_gradient():
    """X6."""
    one, two = Sink(), Sink()

    root = GraphRoot([Edge(one), Edge(two)], [1.0, 2.0])

    assert root.call([]) == [1.0, 2.0]
    assert root.num_inputs == 0


@pytest.mark.usefixtures("no_grad")
class TestFirstGradient:
    """N1, case 1: `.grad` is None."""

    def test_one_that_nobody_else_holds_is_stolen(self):
        """N1, case 1.1."""
        leaf, inputs = Leaf(), [np.ones(2)]
        address = inputs[0].ctypes.data

        assert AccumulateGrad(leaf).accumulate(inputs) is How.STOLEN
        assert leaf.grad.ctypes.data == address

    def test_one_that_someone_holds_is_copied(self):
        """N1, case 1.4."""
        leaf, held = Leaf(), np.ones(2)

        assert AccumulateGrad(leaf).accumulate([held]) is How.COPIED
        assert not np.shares_memory(leaf.grad, held)
        np.testing.assert_array_equal(leaf.grad, [1.0, 1.0])

    @pytest.mark.parametrize(
        "make",
        [
            lambda: np.ones(4)[:2],
            lambda: np.ones((2, 2)).T,
            lambda: np.broadcast_to(np.ones(1), (2,)),
        ],
        ids=["slice", "transpose", "broadcast"],
    )
    def test_a_view_is_copied(self, make: Any):
        """N1, case 1.1: stealable means its memory is its own."""
        leaf, inputs = Leaf(), [make()]

        assert AccumulateGrad(leaf).accumulate(inputs) is How.COPIED
        assert leaf.grad.flags.owndata
        assert leaf.grad.flags.writeable

    def test_a_read_only_array_is_copied(self):
        leaf, inputs = Leaf(), [np.ones(2)]
        inputs[0].flags.writeable = False

        assert AccumulateGrad(leaf).accumulate(inputs) is How.COPIED
        assert leaf.grad.flags.writeable

    def test_a_float_is_stored_as_it_is(self):
        leaf = Leaf()

        AccumulateGrad(leaf).accumulate([2.5])

        assert leaf.grad == 2.5

    def test_under_create_graph_it_is_copied(self):
        """N1, case 1.5."""
        GRAD_ENABLED.set(True)
        leaf = Leaf()

        assert AccumulateGrad(leaf).accumulate([np.ones(2)]) is How.COPIED


@pytest.mark.usefixtures("no_grad")
class TestFurtherGradients:
    """N1, cases 2 and 3: `.grad` is there."""

    def test_with_gradient_mode_off_the_same_array_is_changed(self):
        """N1, case 2.3."""
        stored = np.ones(2)
        leaf = Leaf(grad=stored)

        assert AccumulateGrad(leaf).accumulate([np.ones(2)]) is How.IN_PLACE
        assert leaf.grad is stored
        np.testing.assert_array_equal(stored, [2.0, 2.0])

    def test_with_gradient_mode_on_it_is_replaced(self):
        """N1, case 3.2."""
        GRAD_ENABLED.set(True)
        stored = np.ones(2)
        leaf = Leaf(grad=stored)

        assert AccumulateGrad(leaf).accumulate([np.ones(2)]) is How.OUT_OF_PLACE
        assert leaf.grad is not stored
        np.testing.assert_array_equal(stored, [1.0, 1.0])
        np.testing.assert_array_equal(leaf.grad, [2.0, 2.0])

    def test_a_gradient_that_cannot_be_added_in_place_is_replaced(self):
        """N1, case 2.2: another dtype, a float, a class of the user's."""
        for stored, added, total in (
            (np.float32(1.0), np.float64(2.0), 3.0),
            (1.0, 2.0, 3.0),
            (Money(1), Money(2), Money(3)),
        ):
            leaf = Leaf(grad=stored)
            AccumulateGrad(leaf).accumulate([added])
            assert leaf.grad == total

    def test_a_broadcast_sum_takes_the_larger_shape(self):
        leaf = Leaf(grad=np.ones(1))

        assert AccumulateGrad(leaf).accumulate([np.ones(3)]) is How.OUT_OF_PLACE
        assert leaf.grad.shape == (3,)


class TestNothingToDo:
    def test_an_undefined_gradient_changes_nothing(self):
        """N1, E9."""
        leaf = Leaf()

        assert AccumulateGrad(leaf).accumulate([None]) is How.UNDEFINED
        assert leaf.grad is None

    def test_a_leaf_that_wants_no_gradient_any_more_gets_none(self):
        """N1."""
        leaf = Leaf(requires_grad=False)

        assert AccumulateGrad(leaf).accumulate([1.0]) is How.UNDEFINED
        assert leaf.grad is None

    def test_post_hooks_run_all_the_same(self):
        """N1, C13: PyTorch calls them for an undefined gradient, too."""
        called: list[Leaf] = []
        node = AccumulateGrad(leaf := Leaf())
        node.post_hooks = (called.append,)

        node.call([None])

        assert called == [leaf]


class TestPostHooks:
    """C13."""

    def test_they_see_the_leaf_after_the_update_in_order(self):
        """N1."""
        seen: list[Any] = []
        node = AccumulateGrad(Leaf(grad=1.0))
        node.post_hooks = (
            lambda leaf: seen.append(("first", leaf.grad)),
            lambda leaf: seen.append(("second", leaf.grad)),
        )

        node.call([2.0])

        assert seen == [("first", 3.0), ("second", 3.0)]

    def test_they_must_return_none(self):
        """N1."""
        node = AccumulateGrad(Leaf())
        node.post_hooks = (lambda leaf: leaf.grad,)

        with pytest.raises(RuntimeError) as caught:
            node.call([2.0])
        assert str(caught.value) == (
            "Tensor post accumulate grad hooks should return None."
        )

    def test_they_may_reset_the_gradient(self, engine: Engine):
        """The optimizer in the backward pass."""
        leaf, steps = Leaf(), []
        node = AccumulateGrad(leaf)

        def step(leaf: Leaf) -> None:
            steps.append(leaf.grad)
            leaf.grad = None

        node.post_hooks = (step,)
        for gradient in (1.0, 2.0):
            engine.execute([(Pass(node), 0)], [gradient])

        assert steps == [1.0, 2.0]
        assert leaf.grad is None


def test_two_threads_never_update_one_leaf_at_once():
    """N1, N4: else one of the two sums would be lost."""
    both_inside = threading.Barrier(2)
    met: list[bool] = []

    class Slow:
        def __add__(self, other: "Slow") -> "Slow":
            try:
                both_inside.wait(0.1)
                met.append(True)
            except threading.BrokenBarrierError:
                met.append(False)
            return self

    node = AccumulateGrad(Leaf(grad=Slow()))
    futures = [start_thread(lambda: node.accumulate([Slow()])) for _ in range(2)]
    for future in futures:
        future.result(60)

    assert met == [False, False]


class TestInAPass:
    def test_a_gradient_made_by_a_node_is_stolen(self, engine: Engine):
        """N1, E4: no copy on the way from the node to `.grad`."""
        leaf, listener = Leaf(), Listener()
        root = Call(lambda grad: (grad * 2,), AccumulateGrad(leaf))

        with probe.installed(listener):
            engine.execute([(root, 0)], [np.ones(2)])

        assert listener.of("gradient_accumulated", "how") == [How.STOLEN]
        np.testing.assert_array_equal(leaf.grad, [2.0, 2.0])

    def test_post_hooks_of_the_node_do_not_prevent_that(self, engine: Engine):
        """E4: one more reference is known of."""
        leaf, listener = Leaf(), Listener()
        node = AccumulateGrad(leaf)
        node.hooks = NodeHooks()
        node.hooks.post = (lambda outputs, inputs: None,)

        with probe.installed(listener):
            engine.execute([(Call(lambda grad: (grad * 2,), node), 0)], [np.ones(2)])

        assert listener.of("gradient_accumulated", "how") == [How.STOLEN]

    def test_the_callers_own_gradient_is_never_stolen(self, engine: Engine):
        """N1: the caller holds it."""
        leaf, given = Leaf(), np.ones(2)

        engine.execute([(AccumulateGrad(leaf), 0)], [given])

        assert not np.shares_memory(leaf.grad, given)

    def test_one_gradient_for_two_leaves_is_never_shared(self, engine: Engine):
        """N1: `a + b` sends the same array both ways."""
        a, b = Leaf(), Leaf()
        root = Call(lambda grad: (grad, grad), AccumulateGrad(a), AccumulateGrad(b))

        engine.execute([(root, 0)], [np.ones(2)])
        engine.execute([(root, 0)], [np.ones(2)])

        assert not np.shares_memory(a.grad, b.grad)
        np.testing.assert_array_equal(a.grad, [2.0, 2.0])
        np.testing.assert_array_equal(b.grad, [2.0, 2.0])

    def test_a_gradient_that_the_node_keeps_is_not_changed_later(self, engine: Engine):
        """N1, S3: saved by whoever made it."""
        leaf, kept = Leaf(), []

        def apply(grad: np.ndarray) -> Any:
            kept.append(grad * 2)
            return (kept[-1],)

        root = Call(apply, AccumulateGrad(leaf))
        engine.execute([(root, 0)], [np.ones(2)])
        engine.execute([(root, 0)], [np.ones(2)])

        np.testing.assert_array_equal(kept, [[2.0, 2.0], [2.0, 2.0]])
        np.testing.assert_array_equal(leaf.grad, [4.0, 4.0])

    def test_many_gradients_for_one_leaf_are_added_in_one_buffer(self, engine: Engine):
        """S3: three gradients, one buffer, one accumulation."""
        leaf, listener = Leaf(), Listener()
        node = AccumulateGrad(leaf)
        root = Call(lambda grad: (grad * 1, grad * 2, grad * 3), node, node, node)

        with probe.installed(listener):
            engine.execute([(root, 0)], [np.ones(2)])

        np.testing.assert_array_equal(leaf.grad, [6.0, 6.0])
        assert len(listener.of("gradient_accumulated", "how")) == 1
