"""Backward passes over several streams: where nodes work, and who waits for whom.

The device takes notes (`tests.engine.accelerator`), and every test asks it at the end
for accesses that nothing orders. What the rules are is in `test_stream_rules`.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from gradviz.backends.current_streams import on_streams
from gradviz.backends.device import Device
from gradviz.backends.stream import (
    Stream,
    current_stream,
    default_stream,
    keep_for,
    set_stream,
)
from gradviz.engine import AccumulateGrad, Edge, Engine, Node
from gradviz.engine.engine import MAX_DEPTH
from gradviz.engine.graph.grad_mode import MULTITHREADING_ENABLED
from gradviz.engine.tasks import stream_mismatch
from gradviz.engine.tasks.pass_streams import PassStreams
from gradviz.trace import probe
from tests.backends.noted_device import Notebook
from tests.engine.accelerator import (
    NOTED_0,
    NOTED_1,
    Array,
    Work,
    gradient,
    kernel,
    use,
)
from tests.engine.nodes import (
    Call,
    Leaf,
    Listener,
    Sink,
    edge,
    in_thread,
    raiser,
    run_nested,
    thread_name,
)


@pytest.fixture(autouse=True)
def _ordered(notebook: Notebook) -> Iterator[None]:
    """No test leaves two accesses behind that could happen in either order."""
    yield
    assert notebook.races() == []


@pytest.fixture(params=["device threads", "the caller's thread"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """Runs devices on threads of their own, or all on the caller's."""
    one = Engine()
    MULTITHREADING_ENABLED.set(request.param == "device threads")
    yield one
    MULTITHREADING_ENABLED.set(True)
    one.stop()


@pytest.fixture
def warned() -> Iterator[None]:
    """The warning of a leaf on another stream is off."""
    stream_mismatch.set_enabled(False)
    yield
    stream_mismatch.set_enabled(True)


def leaf_on(stream: Stream | None = None, device: Any = NOTED_0) -> AccumulateGrad:
    """A leaf that was first used on a stream."""
    with stream or contextlib.nullcontext():
        return AccumulateGrad(Leaf(), None, device)


def work_on(stream: Stream, *receivers: Node, **settings: Any) -> Work:
    """A node that was made on a stream."""
    with stream:
        return Work(*receivers, device=stream.device, **settings)


def backward(engine: Engine, root: Node, notebook: Notebook, **settings: Any) -> Any:
    return engine.execute([edge(root)], [gradient(notebook, root.runs_on)], **settings)


class TestWhereNodesWork:
    """E1."""

    def test_a_node_works_on_the_stream_that_was_current_when_it_was_made(
        self, engine, notebook
    ):
        side, other = Stream(NOTED_0), Stream(NOTED_0)
        second = work_on(other, Sink())
        first = work_on(side, second)

        backward(engine, first, notebook)

        assert (first.ran_on, second.ran_on) == (side, other)

    def test_without_a_choice_that_is_the_default_stream(self, engine, notebook):
        node = Work(Sink(device=NOTED_0))

        with Stream(NOTED_0):
            backward(engine, node, notebook)

        assert node.ran_on == default_stream(NOTED_0)

    def test_a_node_on_the_cpu_has_no_stream(self):
        assert Sink().forward_stream is None

    def test_hooks_run_there_as_well(self, engine, notebook):
        seen: dict[str, Stream] = {}

        def note(name: str) -> Any:
            return lambda *_: seen.__setitem__(name, current_stream(NOTED_0))

        side = Stream(NOTED_0)
        leaf = leaf_on(side)
        leaf.post_hooks = (note("after accumulation"),)
        node = work_on(side, leaf)
        node.hooks_to_add_to().tensor_pre = ((0, note("tensor")),)
        node.register_prehook(note("before"))
        node.register_hook(note("after"))

        backward(engine, node, notebook)

        assert len(seen) == 4
        assert set(seen.values()) == {side}

    def test_hooks_of_a_captured_node_run_on_the_stream_of_its_forward(
        self, engine, notebook
    ):
        seen = []
        side = Stream(NOTED_0)
        target = work_on(side, Sink())
        hook = lambda grad: seen.append(current_stream(NOTED_0))  # noqa: E731
        target.hooks_to_add_to().tensor_pre = ((0, hook),)

        backward(
            engine,
            Work(target),
            notebook,
            accumulate_grad=False,
            outputs=[edge(target)],
        )

        assert seen == [side]

    def test_other_devices_are_at_their_default_streams_on_a_devices_thread(
        self, notebook
    ):
        engine, seen = Engine(), []
        node = Work(returns=lambda grad: seen.append(current_stream(NOTED_1)) or ())

        with Stream(NOTED_1):
            backward(engine, node, notebook)
        engine.stop()

        assert seen == [default_stream(NOTED_1)]

    def test_a_device_is_told_on_its_thread_before_a_node_runs_there(self, notebook):
        """C1."""
        engine = Engine()
        node = Work(returns=lambda grad: notebook.told.append((thread_name(),)) or ())

        backward(engine, node, notebook)
        engine.stop()

        ran_at = notebook.told.index(("gv_autograd_0",))
        assert ("make current", "noted:0/0", "gv_autograd_0") in notebook.told[:ran_at]

    def test_the_nodes_device_is_the_current_one(self, engine, notebook):
        seen = []
        look = lambda grad: seen.append(Device("noted")) or ()  # noqa: E731

        backward(engine, Work(device=NOTED_1, returns=look), notebook)

        assert seen == [NOTED_1]
        assert Device("noted") == NOTED_0

    def test_a_node_on_the_cpu_works_on_the_callers_streams(self, engine, notebook):
        seen = []

        def look(grad: Array) -> tuple[()]:
            use(grad)
            seen.append(current_stream(NOTED_0))
            return ()

        side, caller = Stream(NOTED_0), Stream(NOTED_0)
        node = work_on(side, Call(look))

        with caller:
            backward(engine, node, notebook)

        assert seen == [caller]

    def test_a_cpu_node_in_a_pool_thread_works_on_the_callers_streams(self, notebook):
        engine, seen = Engine(), []
        caller = Stream(NOTED_0)

        def innermost(grad: float) -> tuple[()]:
            look = Call(lambda grad: seen.append(current_stream(NOTED_0)) or ())
            backward(engine, Work(look), notebook)
            return ()

        with caller:
            run_nested(engine, MAX_DEPTH + 1, innermost)
        engine.stop()

        assert seen == [caller]

    def test_the_caller_finds_its_streams_as_they_were(self, engine, notebook):
        caller = Stream(NOTED_0)

        def change(grad: Array) -> tuple[Array]:
            stream = Stream(NOTED_0)
            stream.wait_stream(current_stream(NOTED_0))
            set_stream(stream)
            return (grad.copy(),)

        node = Call(change, Work())

        with caller:
            engine.execute([edge(node)], [gradient(notebook)])
            assert current_stream(NOTED_0) == caller

        assert current_stream(NOTED_0) == default_stream(NOTED_0)

    def test_the_caller_finds_its_streams_as_they_were_after_a_node_fails(
        self, engine, notebook
    ):
        node = work_on(Stream(NOTED_0), returns=raiser(ValueError("wrong")))

        with pytest.raises(ValueError, match="wrong"):
            backward(engine, node, notebook)

        assert current_stream(NOTED_0) == default_stream(NOTED_0)


class TestWaits:
    """C3."""

    def test_a_pass_on_one_stream_waits_for_nothing(self, engine, notebook):
        leaf = leaf_on()
        node = Work(leaf, Work(leaf), Work(leaf))

        backward(engine, node, notebook)
        use(leaf.leaf.grad)

        assert leaf.leaf.grad.value == 3
        assert not any(what[0] in ("record", "wait") for what in notebook.told)

    def test_a_consumer_waits_for_the_producer(self, engine, notebook):
        """S1."""
        side = Stream(NOTED_0)
        consumer = work_on(side, Sink(device=NOTED_0))

        backward(engine, Work(consumer), notebook)

        # At the end the sink's stream has waited for it in its turn.
        assert notebook.waits() == [str(side), "noted:0/0"]

    def test_the_root_waits_for_the_callers_stream(self, engine, notebook):
        """X10."""
        side, caller = Stream(NOTED_0), Stream(NOTED_0)
        root = work_on(side)

        with caller:
            backward(engine, root, notebook)

        assert notebook.waits() == [str(side), str(caller)]

    def test_a_consumer_does_not_wait_for_work_launched_after_the_producer(
        self, engine, notebook
    ):
        """The event is recorded at once, and waited for when the consumer runs."""
        side = Stream(NOTED_0)
        consumer = work_on(side)
        other = Work(label="other")

        backward(engine, Work(consumer, other), notebook)

        told = notebook.told
        launched = told.index(("launch", "other", "noted:0/0"))
        assert told.index(("record", "noted:0/0")) < launched
        assert launched < told.index(("wait", str(side)))

    def test_a_consumer_does_not_wait_for_work_launched_after_a_sum(
        self, engine, notebook
    ):
        """The stream that adds goes on; the sum's event is behind the sum alone."""
        adding = Stream(NOTED_0)
        receiver = Work(device=NOTED_1, returns=lambda grad: ())
        other = work_on(adding, label="other")
        mine, yours = (
            work_on(adding, receiver, returns=lambda grad: (grad.copy(),))
            for _ in range(2)
        )
        root = work_on(adding, other, mine, yours)

        backward(engine, root, notebook)

        told = notebook.told
        added = told.index(("launch", "add", str(adding)))
        launched = told.index(("launch", "other", str(adding)))
        assert ("record", str(adding)) in told[added:launched]

    def test_gradients_are_added_on_the_consumers_stream(
        self, engine, notebook, warned
    ):
        """Case A."""
        side = Stream(NOTED_0)
        leaf = leaf_on(side)

        backward(engine, Work(Work(leaf), Work(leaf), Work(leaf)), notebook)

        assert leaf.leaf.grad.value == 3
        # The second sum may be made in place: nobody has seen the first.
        assert [what for what in notebook.told if "add" in what[1]] == [
            ("launch", "add", str(side)),
            ("launch", "add in place", str(side)),
        ]

    def test_gradients_for_another_device_are_added_by_the_first_producer(
        self, engine, notebook
    ):
        """Case B."""
        first, second = Stream(NOTED_0), Stream(NOTED_0)
        # Both are handed on as they are: the receiver takes them from there.
        receiver = Work(device=NOTED_1, returns=lambda grad: ())
        mine, yours = (
            work_on(one, receiver, returns=lambda grad: (grad.copy(),))
            for one in (second, first)
        )

        backward(engine, Work(mine, yours), notebook)

        assert [what for what in notebook.told if "add" in what[1]] == [
            ("launch", "add", str(first))
        ]

    def test_gradients_of_a_third_device_are_added_on_its_current_stream(
        self, engine, notebook
    ):
        """Case C."""

        def send_here(grad: Array) -> Any:
            here, there = current_stream(NOTED_1), current_stream(NOTED_0)
            there.wait_stream(here)
            return (kernel("to_peer", grad, value=grad.value, device=NOTED_1),)

        receiver = work_on(Stream(NOTED_0), returns=lambda grad: ())
        first, second = (
            work_on(Stream(NOTED_0), receiver, returns=send_here) for _ in range(2)
        )

        backward(engine, Work(first, second), notebook)

        assert [what for what in notebook.told if "add" in what[1]] == [
            ("launch", "add", "noted:1/0")
        ]

    def test_undefined_gradients_are_nobodys(self, engine, notebook):
        side = Stream(NOTED_0)
        last = work_on(side, inputs=2)
        node = Work(last, Edge(last, 1), returns=lambda grad: (None, grad))

        backward(engine, node, notebook)

        assert notebook.waits() == [str(side), "noted:0/0"]

    def test_gradients_go_from_device_to_device(self, engine, notebook, warned):
        sides = Stream(NOTED_0), Stream(NOTED_1)
        leaves = [leaf_on(one, one.device) for one in sides]
        middle = work_on(sides[1], *leaves)
        root = work_on(sides[0], middle, *leaves)

        backward(engine, root, notebook)
        use(*(leaf.leaf.grad for leaf in leaves))

        assert [leaf.leaf.grad.value for leaf in leaves] == [2, 2]

    def test_gradients_of_no_device_need_no_waits(self, engine, notebook):
        side = Stream(NOTED_0)
        total = Call(lambda grad: (grad, grad), *[(sink := Sink(device=NOTED_0))] * 2)
        with side:
            root = Call(lambda grad: (1.0,), total, device=NOTED_0)

        engine.execute([edge(root)], [gradient(notebook)])

        assert sink.received == [(2.0,)]
        assert notebook.waits() == [str(side)]

    def test_a_pass_without_outputs_for_a_node_hands_it_nothing(self, engine, notebook):
        """Not even an event is recorded for a gradient that nobody wants."""
        side = Stream(NOTED_0)
        unwanted, wanted = work_on(side), Work()
        root = Work(unwanted, wanted)

        backward(engine, root, notebook, accumulate_grad=False, outputs=[edge(wanted)])

        assert not any(what[0] == "record" for what in notebook.told)

    def test_the_memory_of_a_gradient_is_kept_for_its_consumer(self, engine, notebook):
        side = Stream(NOTED_0)
        consumer = work_on(side)
        root = Work(consumer)

        backward(engine, root, notebook)

        # `_ordered` sees that the free comes after the consumer's work.
        assert consumer.ran_on == side

    def test_a_gradient_that_another_stream_may_still_read_is_not_overwritten(
        self, engine, notebook, warned
    ):
        """Note [Adding in place, with streams]."""
        side = Stream(NOTED_0)
        leaf = leaf_on()
        second = Work(leaf)
        reader = work_on(side)
        # The leaf and the reader get one array; the reader is done with it, as far as
        # the host knows, when the leaf gets another one to add.
        first = Work(leaf, reader, returns=lambda grad: (grad, grad))
        shares = Call(lambda grad: (grad.copy(),), first, device=NOTED_0)

        backward(engine, Work(second, shares), notebook)

        assert leaf.leaf.grad.value == 2

    def test_a_node_on_the_cpu_adds_to_what_nodes_of_one_stream_have_made(
        self, engine, notebook
    ):
        """It works on the caller's stream, which is another one."""
        side = Stream(NOTED_0)
        last = work_on(side)
        here = Call(lambda grad: (gradient(notebook),), last)
        with side:
            to_host = Call(lambda grad: use(grad) or (1.0,), here, device=NOTED_0)
        root = work_on(side, to_host, last)

        backward(engine, root, notebook)

        assert last.ran_on == side


class TestRoots:
    def test_several_roots_begin_on_the_callers_streams(self, engine, notebook):
        """C5: the queue of the first that is not on the CPU."""
        callers = Stream(NOTED_0), Stream(NOTED_1)
        nodes = [Work(device=one.device) for one in callers]

        with on_streams(callers):
            grads = [gradient(notebook, one.device) for one in callers]
            engine.execute([edge(one) for one in nodes], grads)

        assert [one.ran_on for one in nodes] == [
            default_stream(NOTED_0),
            default_stream(NOTED_1),
        ]

    def test_the_graph_root_runs_on_the_device_of_its_gradients(self, notebook):
        engine, listener = Engine(), Listener()
        roots = [edge(Sink()), edge(Sink(device=NOTED_1))]

        with probe.installed(listener):
            engine.execute(roots, [1.0, gradient(notebook, NOTED_1)])
        engine.stop()

        first = listener.of("node_started", "node")[0]
        assert listener.of("event_recorded", "node") == []
        assert listener.threads_of("node_started")[0] == "gv_autograd_1"
        assert first > roots[1].node.id

    def test_without_an_accelerator_it_runs_on_the_caller(self, engine):
        listener = Listener()

        with probe.installed(listener):
            engine.execute([edge(Sink()), edge(Sink())], [1.0, 2.0])

        assert set(listener.threads_of("node_started")) == {thread_name()}


class TestTheCaller:
    """S4-S6, P2."""

    @pytest.mark.parametrize("caller_is_aside", [False, True])
    def test_can_use_grads_on_its_current_stream(
        self, engine, notebook, caller_is_aside, warned
    ):
        leaf = leaf_on(Stream(NOTED_0))
        root = work_on(Stream(NOTED_0), leaf)
        caller = Stream(NOTED_0) if caller_is_aside else default_stream(NOTED_0)

        with caller:
            backward(engine, root, notebook)
            use(leaf.leaf.grad)
            leaf.leaf.grad = None  # and let go of them at once

    def test_can_use_what_was_captured(self, engine, notebook):
        """S6."""
        target = work_on(Stream(NOTED_0), Sink())
        root = work_on(Stream(NOTED_0), target)

        (found,) = backward(
            engine, root, notebook, accumulate_grad=False, outputs=[edge(target)]
        )
        use(found)

    def test_can_use_what_was_captured_of_another_device(self, engine, notebook):
        """The node that is given it works on one device, and so does its stream."""
        target = work_on(Stream(NOTED_0), inputs=2)
        second = Edge(target, 1)
        there = Work(second, device=NOTED_1, returns=lambda grad: (grad.copy(),))
        root = Work(target, there)
        outputs = [edge(target), second]

        found = backward(engine, root, notebook, accumulate_grad=False, outputs=outputs)
        use(*found)

        assert [one.device for one in found] == [NOTED_0, NOTED_1]

    def test_can_use_what_was_captured_of_another_device_and_stream(
        self, engine, notebook
    ):
        """The caller's stream there waits for the node's stream, which has waited."""
        target = work_on(Stream(NOTED_0), inputs=2)
        second = Edge(target, 1)
        there = work_on(Stream(NOTED_1), second, returns=lambda grad: (grad.copy(),))
        root = Work(target, there)

        (found,) = backward(
            engine, root, notebook, accumulate_grad=False, outputs=[second]
        )
        use(found)

        assert found.device is NOTED_1

    def test_finds_its_streams_in_callbacks_which_can_use_grads(
        self, engine, notebook, warned
    ):
        """P2."""
        leaf, seen = leaf_on(Stream(NOTED_0)), []

        def look() -> None:
            use(leaf.leaf.grad)
            seen.append(current_stream(NOTED_0))

        def queue(grad: Array) -> tuple[Array]:
            engine.queue_callback(look)
            return (grad,)

        caller = Stream(NOTED_0)
        with caller:
            backward(engine, work_on(Stream(NOTED_0), leaf, returns=queue), notebook)

        assert seen == [caller]

    def test_a_devices_thread_is_told_of_them_before_a_callback(self, notebook):
        """P2, C1."""
        engine, caller = Engine(), Stream(NOTED_1)

        def queue(grad: Array) -> tuple[()]:
            engine.queue_callback(lambda: notebook.told.append((thread_name(),)))
            return ()

        with caller:
            backward(engine, Work(returns=queue), notebook)
        engine.stop()

        called_at = notebook.told.index(("gv_autograd_0",))
        told = ("make current", str(caller), "gv_autograd_0")
        assert told in notebook.told[:called_at]

    def test_can_use_grads_of_a_pass_that_fails(self, engine, notebook, warned):
        """Differs from PyTorch, where it must wait for the device."""
        leaf = leaf_on(Stream(NOTED_0))
        leaf.leaf.grad = gradient(notebook)
        bad = Work(returns=raiser(ValueError("wrong")))
        root = Work(bad, Work(leaf))

        with pytest.raises(ValueError, match="wrong"):
            backward(engine, root, notebook)

        assert leaf.leaf.grad.value == 2
        use(leaf.leaf.grad)

    def test_has_used_grads_before_the_next_pass_adds_to_them(
        self, engine, notebook, warned
    ):
        """On a device where no root is, too: differs from PyTorch."""

        def send(grad: Array) -> tuple[Array]:
            return (kernel("send", grad, value=grad.value, device=NOTED_1),)

        leaf = leaf_on(Stream(NOTED_1), NOTED_1)
        for _ in range(2):
            backward(engine, Work(leaf, returns=send), notebook)
            use(leaf.leaf.grad)

        assert leaf.leaf.grad.value == 2

    def test_may_have_made_a_grad_that_is_replaced(self, engine, notebook, warned):
        """Its memory is kept until the leaf's stream has read it."""
        leaf = leaf_on(Stream(NOTED_0))
        leaf.leaf.grad = gradient(notebook)
        leaf.leaf.grad.dtype = int  # so that the sum is another array

        backward(engine, Work(leaf), notebook)
        use(leaf.leaf.grad)

        assert leaf.leaf.grad.value == 2

    def test_may_change_the_stream_between_passes(self, engine, notebook, warned):
        stored = Leaf()
        for stream in (Stream(NOTED_0), Stream(NOTED_0), default_stream(NOTED_0)):
            stream.wait_stream(default_stream(NOTED_0))
            with stream:
                root = Work(AccumulateGrad(stored, None, NOTED_0))
                backward(engine, root, notebook)
            default_stream(NOTED_0).wait_stream(stream)
        use(stored.grad)
        keep_for(stored.grad, default_stream(NOTED_0))

        assert stored.grad.value == 3


class TestNestedPasses:
    def test_a_nested_caller_is_the_node_with_its_stream(
        self, engine, notebook, warned
    ):
        """RE1."""
        inner, outer = leaf_on(Stream(NOTED_0)), leaf_on()

        def nested(grad: Array) -> tuple[Array]:
            root = work_on(Stream(NOTED_0), inner)
            engine.execute([edge(root)], [grad])
            found = inner.leaf.grad
            return (kernel("sum", grad, found, value=grad.value + found.value),)

        backward(engine, work_on(Stream(NOTED_0), outer, returns=nested), notebook)
        use(outer.leaf.grad)

        assert outer.leaf.grad.value == 2

    def test_very_deep_ones_are_right_too(self, notebook, warned):
        engine, outer = Engine(max_depth=2), leaf_on()

        def descend(depth: int) -> Any:
            def nested(grad: Array) -> tuple[Array]:
                if depth == 0:
                    return (grad.copy(),)
                leaf = leaf_on(Stream(NOTED_0))
                root = work_on(Stream(NOTED_0), leaf, returns=descend(depth - 1))
                engine.execute([edge(root)], [grad])
                return (leaf.leaf.grad.copy(),)

            return nested

        backward(engine, Work(outer, returns=descend(5)), notebook)
        use(outer.leaf.grad)
        engine.stop()

        assert outer.leaf.grad.value == 1

    def test_passes_of_several_threads_do_not_wait_for_each_other(
        self, engine, notebook
    ):
        def run() -> None:
            leaf = leaf_on()
            backward(engine, Work(leaf), notebook)
            use(leaf.leaf.grad)

        for _ in range(3):
            in_thread(run)

        assert notebook.waits() == []


class TestFailures:
    def test_a_device_that_is_lost_fails_the_pass_and_no_more(
        self, engine, notebook, warned
    ):
        leaf = leaf_on(Stream(NOTED_0))
        root = Work(Work(leaf))
        notebook.is_broken = True
        first = gradient(notebook)

        with pytest.raises(RuntimeError, match="noted:0 is lost"):
            engine.execute([edge(root)], [first])

        notebook.is_broken = False
        backward(engine, root, notebook)
        use(leaf.leaf.grad)
        assert leaf.leaf.grad.value == 1

    @pytest.mark.parametrize(
        "step",
        [
            "current_for",
            "receive",
            "handed_on",
            "prepare_sum",
            "summed",
            "leave",
            "join",
        ],
    )
    def test_a_backend_that_fails_at_any_step_is_an_error_like_any_other(
        self, engine, notebook, monkeypatch, step
    ):
        """R6: it strikes no code of the engine's own, so nothing is thrown away."""
        error, streams = ValueError("lost"), (Stream(NOTED_0), Stream(NOTED_0))
        last = work_on(streams[0])
        root = Work(work_on(streams[1], last), work_on(streams[0], last))
        backward(engine, root, notebook)
        queue = engine.worker().ready_queue

        with monkeypatch.context() as patch:
            whole = getattr(PassStreams, step)

            def fail(self: PassStreams, *args: Any, **settings: Any) -> Any:
                # What the caller gives the root is no task yet.
                if step == "handed_on" and args[0] is None:
                    return whole(self, *args, **settings)
                raise error

            patch.setattr(PassStreams, step, fail)
            with pytest.raises(ValueError, match="lost") as caught:
                backward(engine, root, notebook)

        assert caught.value is error
        assert engine.worker().ready_queue is queue
        backward(engine, root, notebook)

    def test_a_node_that_fails_has_others_wait_for_nothing(self, engine, notebook):
        side = Stream(NOTED_0)
        last = work_on(side)
        root = Work(last, returns=raiser(ValueError("wrong")))

        with pytest.raises(ValueError, match="wrong"):
            backward(engine, root, notebook)

        assert notebook.waits() == []
        assert last.ran_on is None


class TestReports:
    def test_each_wait_names_who_waits_for_whom(self, engine, notebook):
        listener, side = Listener(), Stream(NOTED_0)
        consumer = work_on(side)
        root = Work(consumer)

        with probe.installed(listener):
            backward(engine, root, notebook)

        (task,) = set(listener.of("event_recorded", "task"))
        recorded = listener.of("event_recorded", "node", "stream", "event")
        waited = listener.of("stream_waited", "node", "stream", "event", "producer")
        (root_id, first, event), (caller, second, end) = recorded
        assert (root_id, first) == (root.id, "noted:0/0")
        assert (caller, second) == (-1, str(side))
        assert waited == [
            (consumer.id, str(side), event, root.id),
            (-1, "noted:0/0", end, -1),
        ]
        assert listener.of(
            "leaf_stream_synced", "task", "stream", "caller_stream", "event"
        ) == [(task, str(side), "noted:0/0", end)]

    def test_a_sum_names_its_receiver_and_the_producers(self, engine, notebook, warned):
        listener, side = Listener(), Stream(NOTED_0)
        leaf = leaf_on(side)
        one, other = Work(leaf), Work(leaf)

        with probe.installed(listener):
            backward(engine, Work(one, other), notebook)

        waited = listener.of("stream_waited", "node", "stream", "producer")
        assert set(waited[:2]) == {
            (leaf.id, str(side), one.id),
            (leaf.id, str(side), other.id),
        }


class TestTheWarningOfAMismatch:
    """C4."""

    @pytest.fixture(autouse=True)
    def _again(self) -> None:
        stream_mismatch.set_enabled(True)

    def test_a_leaf_on_another_stream_is_told_of(self, engine, notebook):
        side = Stream(NOTED_0)
        leaf = leaf_on(side)
        root = Work(leaf)
        expected = (
            f"The AccumulateGrad node's stream does not match .*<AccumulateGrad "
            f"#{leaf.id}> was made, and works, on {side}, and the gradient comes from "
            f"<Work #{root.id}> on noted:0/0.*detect_anomaly"
        )

        with pytest.warns(UserWarning, match=expected):
            backward(engine, root, notebook)

    def test_once(self, engine, notebook):
        leaf = leaf_on(Stream(NOTED_0))

        with pytest.warns(UserWarning, match="stream does not match") as found:
            backward(engine, Work(Work(leaf), Work(leaf)), notebook)

        assert len(found) == 1

    def test_not_if_nobody_wants_it(self, engine, notebook):
        stream_mismatch.set_enabled(False)

        backward(engine, Work(leaf_on(Stream(NOTED_0))), notebook)

    def test_not_for_a_leaf_on_the_stream_of_its_producer(self, engine, notebook):
        side = Stream(NOTED_0)

        backward(engine, work_on(side, leaf_on(side)), notebook)

    def test_not_for_a_leaf_on_another_device(self, engine, notebook):
        backward(engine, Work(leaf_on(device=NOTED_1)), notebook)

    def test_not_for_other_nodes(self, engine, notebook):
        backward(engine, Work(work_on(Stream(NOTED_0))), notebook)
