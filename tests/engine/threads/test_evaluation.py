"""Running one node and handing on what it returns."""

import gc
import weakref
from typing import Any

import numpy as np
import pytest

from gradviz.engine import AccumulateGrad, Edge, Engine, InputMetadata, Node
from gradviz.engine.tasks.graph_task import Capture, ExecInfo, GraphTask
from gradviz.engine.threads.evaluation import evaluate_function
from gradviz.trace import probe
from gradviz.trace.probe import How
from tests.engine.nodes import (
    SIM_0,
    SIM_1,
    Call,
    Leaf,
    Listener,
    Mailbox,
    Money,
    Pass,
    Sink,
    thread_name,
)

F64 = np.dtype("float64")


def run(engine: Engine, root: Node, gradient: Any = 1, **settings: Any) -> Any:
    return engine.execute([(root, 0)], [gradient], **settings)


class TestSums:
    def test_a_node_waits_for_all_its_gradients_and_runs_once(self, engine: Engine):
        """E8, X8: a diamond."""
        sink = Sink()
        root = Pass(Pass(sink, factor=10), Pass(sink, factor=3))

        run(engine, root, 2)

        assert sink.received == [(26,)]

    def test_each_of_several_edges_to_one_input_counts(self, engine: Engine):
        """E8, X8: multi-edges, and one that leads nowhere between them."""
        sink = Sink()

        run(engine, Call(lambda grad: (1, 100, 10, 1000), sink, None, sink, sink))

        assert sink.received == [(1011,)]

    def test_gradients_gather_at_their_inputs(self, engine: Engine):
        """E8: a place in the buffer for each input."""
        sink = Sink(inputs=3)
        receivers = Edge(sink, 2), Edge(sink, 0), Edge(sink, 2)

        run(engine, Call(lambda grad: (1, 2, 4), *receivers))

        assert sink.received == [(2, None, 5)]

    def test_the_gradients_of_a_buffer_are_added_in_order_of_arrival(
        self, engine: Engine
    ):
        """S3: `old + new`; here of strings, whose sum shows it."""
        sink = Sink()

        run(engine, Call(lambda grad: ("a", "b", "c"), sink, sink, sink))

        assert sink.received == [("abc",)]

    def test_gradients_may_be_of_any_class_with_a_plus(self, engine: Engine):
        """Money is added by its own `+`, in the buffer and in `.grad`."""
        leaf = Leaf(grad=Money(1000))
        node = AccumulateGrad(leaf)

        run(engine, Call(lambda money: (money, Money(1)), node, node), Money(50))

        assert leaf.grad == Money(1051)

    def test_gradients_that_cannot_be_added_are_an_error_of_the_pass(
        self, engine: Engine
    ):
        """And the engine works afterwards."""
        sink = Sink()

        with pytest.raises(TypeError, match="unsupported operand"):
            run(engine, Call(lambda grad: (object(), object()), sink, sink))

        run(engine, sink, 3)
        assert sink.received == [(3,)]

    def test_a_gradients_own_plus_may_call_backward(self, engine: Engine):
        """No user code runs under a lock of the engine."""
        inner, sink = Sink(), Sink()

        class Nosy(int):
            def __add__(self, other: int) -> int:
                run(engine, Pass(inner), 7)
                return int(self) + int(other)

        run(engine, Call(lambda grad: (Nosy(1), Nosy(2)), sink, sink))

        assert inner.received == [(7,)]
        assert sink.received == [(3,)]

    @pytest.mark.parametrize(
        ("create_graph", "how"), [(False, How.IN_PLACE), (True, How.OUT_OF_PLACE)]
    )
    def test_sums_that_are_part_of_a_graph_are_never_made_in_place(
        self, engine: Engine, create_graph: bool, how: How
    ):
        """S3: two nodes send arrays that nobody else holds."""
        sink, listener = Sink(), Listener()
        ways = [Call(lambda grad: (grad * 2,), sink) for _ in range(2)]

        with probe.installed(listener):
            run(
                engine,
                Pass(*ways),
                np.ones(1),
                create_graph=create_graph,
                accumulate_grad=False,
                outputs=[(sink, 0)],
            )

        hows = listener.of("gradient_buffered", "node", "how")
        assert [one for node, one in hows if node == sink.id] == [How.FIRST, how]


class TestUndefined:
    def test_an_undefined_gradient_still_lets_its_receiver_run(self, engine: Engine):
        """E9."""
        sink = Sink(inputs=2)

        run(engine, Call(lambda grad: (None,), sink))

        assert sink.received == [(None, None)]

    def test_an_undefined_gradient_adds_nothing(self, engine: Engine):
        """E9."""
        sink = Sink()

        run(engine, Call(lambda grad: (None, 3, None), sink, sink, sink))

        assert sink.received == [(3,)]

    def test_undefined_gradients_travel_to_the_leaves(self, engine: Engine):
        """E9, N1."""
        leaf = Leaf()
        chain = Call(lambda grad: (grad,), AccumulateGrad(leaf))

        run(engine, Call(lambda grad: (None,), chain))

        assert leaf.grad is None

    def test_a_root_may_be_given_none(self, engine: Engine):
        """V2."""
        sink = Sink()

        run(engine, sink, None)

        assert sink.received == [(None,)]


class TestReleasing:
    """E5."""

    def node(self, log: list[str], *receivers: Node) -> Node:
        class Saving(Node):
            def apply(self, grad: Any) -> Any:
                log.append("apply")
                return (grad,) * len(self.next_edges)

            def release_variables(self) -> None:
                log.append("release")

        return Saving([(one, 0) for one in receivers])

    def test_saved_tensors_are_released_after_the_call(self, engine: Engine):
        """E5."""
        log: list[str] = []

        run(engine, self.node(log))

        assert log == ["apply", "release"]

    def test_a_kept_graph_keeps_them(self, engine: Engine):
        """E5, the field `keep_graph`."""
        log: list[str] = []

        run(engine, self.node(log), keep_graph=True)

        assert log == ["apply"]

    def test_they_are_released_before_the_next_node_runs(self, engine: Engine):
        """E5: memory goes down as the pass goes on."""
        log: list[str] = []

        run(engine, self.node(log, Pass(log=log, label="next")))

        assert log == ["apply", "release", "next"]

    def test_a_node_that_is_only_captured_keeps_its_own(self, engine: Engine):
        """I5: it did not run."""
        log: list[str] = []
        node = self.node(log)

        run(engine, Pass(node), accumulate_grad=False, outputs=[Edge(node)])

        assert log == []

    def test_a_node_that_fails_keeps_its_own(self, engine: Engine):
        """E5: released after the call only."""
        released: list[bool] = []

        class Failing(Node):
            def apply(self, grad: Any) -> Any:
                raise ValueError("mine")

            def release_variables(self) -> None:
                released.append(True)

        with pytest.raises(ValueError, match="mine"):
            run(engine, Failing())

        assert released == []

    def test_the_gradients_of_a_node_are_let_go_before_the_next_one_runs(
        self, engine: Engine
    ):
        """M4: the peak memory of a chain does not grow with its length."""
        alive: list[int] = []
        seen: list[weakref.ref[np.ndarray]] = []

        def apply(grad: np.ndarray) -> Any:
            seen.append(weakref.ref(grad))
            alive.append(sum(ref() is not None for ref in seen))
            return (grad + 1,)

        node: Node = Sink()
        for _ in range(10):
            node = Call(apply, node)
        gradient = np.ones(1)
        run(engine, node, gradient)

        assert alive == [1] + [2] * 9  # the caller's own and the current one

    def test_a_node_lets_go_of_its_gradients_before_its_results_are_added_up(
        self, engine: Engine
    ):
        """M4: the sums of large gradients find the inputs gone."""
        inputs: list[weakref.ref[Any]] = []
        alive: list[bool] = []

        class Adding:
            def __add__(self, other: "Adding") -> "Adding":
                alive.append(inputs[0]() is not None)
                return self

        def apply(grad: Adding) -> Any:
            inputs.append(weakref.ref(grad))
            return Adding(), Adding()

        sink = Sink()
        root = Call(lambda grad: (Adding(),), Call(apply, sink, sink))
        run(engine, root)

        assert alive == [False]


class TestOrder:
    def test_the_node_made_last_runs_first_and_leaves_before_all(self, engine: Engine):
        """G4, N2: w, v, leaf b, u, leaf a."""
        log: list[str] = []
        a, b = AccumulateGrad(Leaf()), AccumulateGrad(Leaf())
        a.post_hooks = (lambda _: log.append("a"),)
        b.post_hooks = (lambda _: log.append("b"),)
        u = Pass(a, log=log, label="u")
        v = Pass(b, log=log, label="v")
        w = Pass(u, v, log=log, label="w")

        run(engine, w)

        assert log == ["w", "v", "b", "u", "a"]

    def test_edges_are_followed_in_their_order(self, engine: Engine):
        """Q4, E8: what ties shows who was pushed first."""
        ran: list[int] = []
        leaves = [AccumulateGrad(Leaf()) for _ in range(3)]
        for index, leaf in enumerate(leaves):
            leaf.post_hooks = (lambda _, index=index: ran.append(index),)
        first, second, third = leaves

        run(engine, Pass(third, first, second))

        assert ran == [2, 0, 1]


class TestQueues:
    """C5, E10, L12: each node runs on its device's thread."""

    def test_a_node_runs_on_the_thread_of_its_device(self, engine: Engine):
        names: dict[str, str] = {}

        def noting(label: str) -> Any:
            def apply(grad: int) -> Any:
                names[label] = thread_name()
                return (grad,)

            return apply

        last = Call(lambda grad: names.update(cpu_again=thread_name()) or ())
        on_1 = Call(noting("sim:1"), last, device=SIM_1)
        on_0 = Call(noting("sim:0"), on_1, device=SIM_0)
        run(engine, Call(noting("cpu"), on_0))

        assert names == {
            "cpu": thread_name(),
            "sim:0": "gv_autograd_0",
            "sim:1": "gv_autograd_1",
            "cpu_again": thread_name(),
        }

    def test_a_root_runs_on_its_device_too(self, engine: Engine):
        """C5: the queue of the root is chosen like every other."""
        names: list[str] = []

        run(engine, Call(lambda grad: names.append(thread_name()) or (), device=SIM_1))

        assert names == ["gv_autograd_1"]

    def test_an_undefined_gradient_does_not_change_where_its_receiver_runs(
        self, engine: Engine
    ):
        """C5: `test_node_ordering_when_none_returned`."""
        names: list[str] = []
        receiver = Call(lambda grad: names.append(thread_name()) or (), device=SIM_0)

        run(engine, Call(lambda grad: (None,), receiver))

        assert names == ["gv_autograd_0"]

    def test_two_devices_may_feed_one_node(self, engine: Engine):
        """E8 across threads: exact sum, one run."""
        sink = Sink()
        ways = [
            Pass(sink, factor=10**index, device=device)
            for index, device in enumerate((SIM_0, SIM_1) * 8)
        ]

        run(engine, Pass(*ways))

        assert sink.received == [(int("1" * 16),)]


class TestRestricted:
    def test_branches_that_lead_to_no_output_do_not_run(self, engine: Engine):
        """I4, I6."""
        log: list[str] = []
        wanted, other = Leaf(), Leaf()
        to_wanted = Pass(AccumulateGrad(wanted), log=log, label="to wanted")
        to_other = Pass(AccumulateGrad(other), log=log, label="to other")
        output = to_wanted.next_edges[0]

        run(engine, Pass(to_wanted, to_other), outputs=[output])

        assert log == ["to wanted"]
        assert (wanted.grad, other.grad) == (1, None)

    def test_a_needed_node_that_also_feeds_unneeded_ones_completes(
        self, engine: Engine
    ):
        """I6: what they would get is counted and dropped."""
        wanted, unneeded = Sink(), Sink()
        shared = Pass(unneeded, wanted, unneeded)

        captured = run(
            engine, Pass(shared), accumulate_grad=False, outputs=[Edge(wanted)]
        )

        assert captured == (1,)
        assert unneeded.received == []

    def test_grad_does_not_run_its_outputs(self, engine: Engine):
        """I3, I5."""
        leaf = Leaf()
        node = AccumulateGrad(leaf)

        captured = run(
            engine, Pass(node), 4, accumulate_grad=False, outputs=[(node, 0)]
        )

        assert captured == (4,)
        assert leaf.grad is None

    def test_one_edge_may_be_asked_for_twice(self, engine: Engine):
        """I3."""
        node = Sink()

        captured = run(
            engine, Pass(node), accumulate_grad=False, outputs=[(node, 0), (node, 0)]
        )

        assert captured == (1, 1)

    def test_outputs_come_back_in_the_order_they_were_asked_for(self, engine: Engine):
        """I3."""
        a, b = Sink(inputs=2), Sink()
        root = Call(lambda grad: (1, 2, 3), a, Edge(a, 1), b)

        captured = run(
            engine, root, accumulate_grad=False, outputs=[(b, 0), (a, 1), (a, 0)]
        )

        assert captured == (3, 2, 1)

    def test_an_output_on_the_way_to_another_is_captured_and_run(self, engine: Engine):
        """I4."""
        far = Sink()
        near = Pass(far, factor=5)

        captured = run(
            engine,
            Pass(near, factor=2),
            accumulate_grad=False,
            outputs=[(far, 0), (near, 0)],
        )

        assert captured == (10, 2)

    def test_an_output_that_nothing_leads_to_gets_none(self, engine: Engine):
        """I7."""
        reached, unreached = Sink(), Sink()

        captured = run(
            engine,
            Pass(reached),
            accumulate_grad=False,
            outputs=[(unreached, 0), (reached, 0)],
        )

        assert captured == (None, 1)

    def test_the_root_itself_may_be_an_output(self, engine: Engine):
        """I3, I5."""
        log: list[str] = []
        root = Pass(Sink(), log=log, label="root")

        captured = run(engine, root, 9, accumulate_grad=False, outputs=[(root, 0)])

        assert captured == (9,)
        assert log == []

    def test_backward_with_outputs_returns_nothing(self, engine: Engine):
        """I2."""
        sink = Sink()

        assert run(engine, Pass(sink), outputs=[(sink, 0)]) == ()
        assert sink.received == [(1,)]

    def test_an_undefined_gradient_is_captured_as_none(self, engine: Engine):
        """I5, E9."""
        sink = Sink()
        root = Call(lambda grad: (None,), sink)

        assert run(engine, root, accumulate_grad=False, outputs=[(sink, 0)]) == (None,)

    def test_captures_on_devices_reach_the_caller(self, engine: Engine):
        """I5 on a device thread."""
        a, b = Sink(device=SIM_0), Sink(device=SIM_1)
        root = Pass(Pass(a, factor=2, device=SIM_0), Pass(b, factor=3, device=SIM_1))

        captured = run(engine, root, accumulate_grad=False, outputs=[(a, 0), (b, 0)])

        assert captured == (2, 3)


@pytest.mark.usefixtures("_perhaps_listened")
class TestBadNodes:
    def test_an_edge_inside_the_graph_to_an_input_that_is_not_there(
        self, engine: Engine
    ):
        """The pass fails, and the engine works afterwards."""
        sink = Sink()

        with pytest.raises(IndexError):
            run(engine, Pass(Edge(sink, 1)))

        run(engine, sink, 3)
        assert sink.received == [(3,)]

    def test_a_node_that_returns_nothing_but_has_edges_is_named(self, engine: Engine):
        """V1."""
        with pytest.raises(TypeError, match="Function Call returned an invalid result"):
            run(engine, Call(lambda grad: None, Sink()))

    def test_a_leaf_node_may_return_nothing(self, engine: Engine):
        """E6: it has no edges; forgetting `return ()` is no mistake."""
        run(engine, Call(lambda grad: None))

    def test_a_leaf_node_that_returns_gradients_is_an_error(self, engine: Engine):
        """V1."""
        with pytest.raises(RuntimeError, match="expected 0, but got 1"):
            run(engine, Call(lambda grad: (grad,)))

    def test_an_array_is_no_sequence_of_gradients(self, engine: Engine):
        """V1: the usual slip, `return grad` for `return (grad,)`."""
        root = Call(lambda grad: grad, Sink())

        with pytest.raises(TypeError, match="but got ndarray"):
            run(engine, root, np.ones(1))

    def test_a_cycle_beyond_the_root_is_named_when_the_pass_gets_stuck(
        self, engine: Engine
    ):
        """P2."""
        a, b = Pass(), Pass()
        a.next_edges, b.next_edges = (Edge(b),), (Edge(a),)

        with pytest.raises(RuntimeError, match="the graph has a cycle") as caught:
            run(engine, Pass(a))

        assert f"{a!r} -> {b!r}" in str(caught.value)
        sink = Sink()
        run(engine, sink, 3)
        assert sink.received == [(3,)]

    def test_a_graph_that_changes_under_the_pass_is_an_error(self, engine: Engine):
        """E8: `dependency not found`."""
        stranger = Sink()

        def apply(grad: int) -> Any:
            root.next_edges = (Edge(stranger),)
            return (grad,)

        root = Call(apply, Sink())

        with pytest.raises(RuntimeError, match=r"^dependency not found for Sink$"):
            run(engine, root)


def test_a_metadata_of_the_receiver_decides_what_it_gets(engine: Engine):
    """V3, V5 inside a pass: reduced and cast on the way."""
    received: list[np.ndarray] = []
    receiver = Call(
        lambda grad: received.append(grad) or (), metadata=(InputMetadata((2,), F64),)
    )

    run(engine, Call(lambda grad: (np.ones((3, 2), "float32"),), receiver))

    assert received[0].dtype == F64
    np.testing.assert_array_equal(received[0], [3.0, 3.0])


def test_a_finished_graph_is_freed_without_the_collector(engine: Engine):
    """F23: no reference cycle, and nothing of it stays on the caller's thread."""
    root = Pass(Pass(Sink()))
    refs = [weakref.ref(node) for node in (root, root.next_edges[0].node)]
    gc.disable()
    try:
        run(engine, root)
        del root
        assert [ref() for ref in refs] == [None, None]
    finally:
        gc.enable()


def test_a_finished_graph_is_freed_on_device_threads_too(engine: Engine):
    """F23: a device thread that waits for work holds nothing of the last pass."""
    freed = Mailbox()
    root = Pass(Pass(Sink(device=SIM_0), device=SIM_0), device=SIM_0)
    ref = weakref.ref(root, lambda _: freed.send())

    run(engine, root)
    del root

    freed.wait()
    assert ref() is None


def test_an_idle_device_thread_keeps_no_gradient(engine: Engine):
    """M4: once the call has returned nobody of ours holds a gradient."""
    seen: list[weakref.ref[np.ndarray]] = []
    root = Call(lambda grad: seen.append(weakref.ref(grad)) or (), device=SIM_0)

    run(engine, Call(lambda grad: (np.ones(2),), root))

    assert [ref() for ref in seen] == [None]


def test_the_return_value_of_a_capture_hook_is_captured_instead():
    seen = []

    def hook(gradients, input_nr):
        seen.append((list(gradients), input_nr))
        return gradients[input_nr] * 10

    leaf = AccumulateGrad(Leaf())
    engine = Engine()
    worker = engine.worker()
    worker.ready_queue = engine.queues.new_caller_queue()
    graph_task = GraphTask(
        engine.sync,
        keep_graph=False,
        create_graph=False,
        reentrant_depth=0,
        cpu_ready_queue=worker.ready_queue,
        owner=-1,
        home=worker,
        uses_device_threads=False,
        probe=None,
    )
    info = ExecInfo()
    info.captures.append(Capture(0, 0, hook))
    graph_task.exec_info = {leaf: info}
    graph_task.captured_gradients = [None]

    evaluate_function(worker, graph_task, None, leaf, [3.0])

    assert graph_task.captured_gradients == [30.0]
    assert seen == [([3.0], 0)]
    assert leaf.leaf.grad is None
