"""The end of a pass: final callbacks, their errors, and the notices."""

from typing import Any

import pytest

from gradviz.engine import Engine, PyTorchSchedule
from gradviz.engine.graph.grad_mode import GRAD_ENABLED
from gradviz.engine.graph.sync import THREADS
from gradviz.engine.tasks.device_queues import DeviceQueues
from gradviz.engine.tasks.graph_task import CPU_DEVICE, GraphTask, NodeTask
from gradviz.engine.tasks.passes_under_way import Passes
from gradviz.engine.threads.completion import (
    fail_torn_passes,
    mark_as_completed_and_run_post_processing,
    push_wake_up,
)
from gradviz.errors import EngineError
from gradviz.trace.probe import Push
from tests.engine.nodes import (
    PLACES,
    SIM_0,
    Call,
    Listener,
    Pass,
    Sink,
    new_graph_task,
    new_worker,
    raiser,
    run_at,
)


def queueing(engine: Engine, *callbacks: Any) -> Any:
    """Return the body of a node that queues `callbacks`."""

    def apply(grad: Any) -> Any:
        for callback in callbacks:
            engine.queue_callback(callback)
        return ()

    return apply


def logging(log: list[str], text: str) -> Any:
    return lambda: log.append(text)


def test_a_callback_runs_after_the_last_node_and_before_the_call_returns(
    engine: Engine,
):
    """P2, G7."""
    log: list[str] = []
    older = Pass(log=log, label="older")
    newer = Call(queueing(engine, logging(log, "callback")))

    engine.execute([(Pass(older, newer), 0)], [1])

    assert log == ["older", "callback"]


@pytest.mark.parametrize("place", PLACES)
def test_callbacks_run_in_the_order_they_were_queued(engine: Engine, place: str):
    """P2: on every kind of thread."""
    log: list[str] = []

    run_at(
        engine, place, queueing(engine, logging(log, "first"), logging(log, "second"))
    )

    assert log == ["first", "second"]


def test_a_callback_may_queue_another_which_runs_as_well(engine: Engine):
    """P2, G7: the list may grow while it is walked."""
    log: list[Any] = []

    def first() -> None:
        log.append(engine.current_graph_task)
        engine.queue_callback(lambda: log.append(engine.current_graph_task))

    root = Call(queueing(engine, first))
    engine.execute([(root, 0)], [1])

    assert log[0] is log[1] is not None
    assert engine.current_graph_task is None


def test_callbacks_belong_to_the_pass_that_queued_them(engine: Engine):
    """P3, G7: the inner one's runs when the inner pass ends."""
    log: list[str] = []

    def apply(grad: Any) -> Any:
        engine.queue_callback(logging(log, "outer callback"))
        inner = Call(queueing(engine, logging(log, "inner callback")))
        engine.execute([(inner, 0)], [1])
        log.append("inner returned")
        return ()

    engine.execute([(Call(apply), 0)], [1])

    assert log == ["inner callback", "inner returned", "outer callback"]


def test_outside_a_backward_nothing_can_be_queued(engine: Engine):
    """P3."""
    with pytest.raises(RuntimeError) as caught:
        engine.queue_callback(lambda: None)

    assert str(caught.value) == (
        "Final callbacks can only be installed during backward pass."
    )


def test_no_callback_runs_when_a_node_failed(engine: Engine):
    """R5, G7."""
    log: list[str] = []
    failing = Call(raiser(ValueError("mine")))
    newer = Call(queueing(engine, logging(log, "callback")))

    with pytest.raises(ValueError, match="mine"):
        engine.execute([(Pass(failing, newer), 0)], [1])

    assert log == []


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_error_of_a_callback_reaches_the_caller_and_ends_the_rest(
    engine: Engine, place: str, kind: type[BaseException]
):
    """P4, F09: from every kind of thread, and the engine works afterwards."""
    log: list[str] = []
    error = kind("mine")

    with pytest.raises(kind) as caught:
        run_at(
            engine,
            place,
            queueing(
                engine, logging(log, "first"), raiser(error), logging(log, "third")
            ),
        )

    assert caught.value is error
    assert log == ["first"]
    sink = Sink(device=SIM_0)
    engine.execute([(sink, 0)], [1])
    assert sink.received == [(1,)]


@pytest.mark.parametrize("place", PLACES)
def test_a_callback_may_call_backward(engine: Engine, place: str):
    """F09."""
    sink = Sink()

    run_at(
        engine, place, queueing(engine, lambda: engine.execute([(Pass(sink), 0)], [5]))
    )

    assert sink.received == [(5,)]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("create_graph", [True, False])
def test_gradient_mode_in_a_callback_is_that_of_the_pass(
    engine: Engine, place: str, create_graph: bool
):
    """P2: with the state of the pass's nodes restored."""
    modes: list[bool] = []
    out = Sink()

    def apply(grad: Any) -> Any:
        engine.queue_callback(lambda: modes.append(GRAD_ENABLED.get()))
        return (grad,)

    def grad_of_out(grad: Any) -> Any:
        node = Call(apply, out)
        if place == "device":
            node.runs_on = SIM_0
        engine.execute(
            [(node, 0)],
            [1],
            create_graph=create_graph,
            accumulate_grad=False,
            outputs=[(out, 0)],
        )
        return ()

    if place == "pool":
        run_at(engine, place, grad_of_out)
    else:
        grad_of_out(1)

    assert modes == [create_graph]
    assert GRAD_ENABLED.get() is True


def test_a_callback_sees_the_results_of_the_whole_pass(engine: Engine):
    """P2: also those that came from devices."""
    seen: list[Any] = []
    on_device = Sink(device=SIM_0)
    root = Call(
        lambda grad: (
            engine.queue_callback(lambda: seen.extend(on_device.received)) or (grad,)
        ),
        on_device,
    )

    engine.execute([(root, 0)], [7])

    assert seen == [(7,)]


class Scene:
    """Two devices, and a thread that works for the first of them."""

    def __init__(self) -> None:
        self.queues = DeviceQueues(THREADS, PyTorchSchedule)
        for _ in range(2):
            self.queues.add(self.queues.new_device_queue())
        self.queue, self.other = self.queues
        self.worker = new_worker(queues=self.queues)
        self.worker.serve(self.queue, 0)

    def ends(self, task: GraphTask) -> None:
        mark_as_completed_and_run_post_processing(self.worker, task)


class TestTheOwner:
    """M5, P1: who is to leave is told, or finds out by itself."""

    def test_finds_out_by_itself_if_it_counted_the_last_task(self):
        scene, task = Scene(), new_graph_task(owner=0)

        scene.ends(task)

        assert (
            task.outcome.is_done,
            task.outcome.is_complete,
            task.outcome.is_ended,
        ) == (True, True, True)
        assert scene.queue.is_empty()
        assert task.cpu_ready_queue.is_empty()

    @pytest.mark.parametrize("owner", [CPU_DEVICE, 1])
    def test_is_woken_by_any_other_thread(self, owner: int):
        scene, task = Scene(), new_graph_task(owner=owner)
        queue = task.cpu_ready_queue if owner == CPU_DEVICE else scene.other

        scene.ends(task)

        assert (
            task.outcome.is_done,
            task.outcome.is_complete,
            task.outcome.is_told,
        ) == (False, True, True)
        wake_up = queue.pop(timeout=0.0)
        assert (wake_up.graph_task, wake_up.ends_pass) == (task, True)
        assert task.outstanding_tasks == 0
        assert scene.queue.is_empty()

    def test_is_not_told_twice_of_a_pass_that_was_given_up(self):
        scene, task = Scene(), new_graph_task(owner=CPU_DEVICE)
        task.outcome.claim_end()

        scene.ends(task)

        assert (task.outcome.is_done, task.outcome.is_told) == (False, False)
        assert task.cpu_ready_queue.is_empty()

    def test_of_a_failed_pass_is_woken_and_no_callback_runs(self):
        scene, task = Scene(), new_graph_task(owner=CPU_DEVICE)
        task.outcome.final_callbacks.append(raiser(AssertionError()))
        error = ValueError("mine")
        task.outcome.set_error(error, None)

        scene.ends(task)

        assert (task.outcome.error, task.outcome.is_complete, task.outcome.is_told) == (
            error,
            False,
            True,
        )

    def test_hears_of_an_error_of_a_callback(self):
        """P4: and the engine's own code goes on in its own name."""
        scene, error = Scene(), ValueError("mine")
        task = new_graph_task(owner=CPU_DEVICE)
        task.outcome.final_callbacks.append(raiser(error))

        scene.ends(task)

        assert (task.outcome.error, task.outcome.is_complete, task.outcome.is_told) == (
            error,
            False,
            True,
        )
        assert not scene.worker.in_user_code
        assert scene.worker.graph_task is None

    def test_hears_nothing_while_an_interrupt_is_on_its_way_down(self):
        """Note [Interrupted engine code]: a callback's backward was struck."""
        scene, error = Scene(), KeyboardInterrupt()
        task = new_graph_task(owner=CPU_DEVICE)

        def callback() -> None:
            scene.worker.is_interrupted = True
            raise error

        task.outcome.final_callbacks.append(callback)

        with pytest.raises(KeyboardInterrupt):
            scene.ends(task)

        assert task.outcome.error is None
        assert not task.outcome.is_ended

    def test_of_a_pass_with_gradients_missing_hears_of_that(self):
        """X9: and nothing keeps those that have come."""
        scene, node = Scene(), Sink()
        task = new_graph_task(owner=0)
        task.dependencies[node] = 1
        task.not_ready[node] = [1]

        scene.ends(task)

        assert "could not compute gradients" in str(task.outcome.error)
        assert task.not_ready == {}


@pytest.mark.parametrize("ends_pass", [True, False])
def test_a_wake_up_of_a_failed_pass_counts_and_that_of_an_ended_one_does_not(
    ends_pass: bool,
):
    """M5: so that it cannot be left behind in the queue."""
    listener, scene = Listener(), Scene()
    task = new_graph_task(owner=1, probe=listener, reentrant_depth=2)
    task.outstanding_tasks = 3
    scene.other.push_own(NodeTask(task, Sink(), [], 0))

    push_wake_up(scene.worker, task, ends_pass=ends_pass)

    count = 3 if ends_pass else 4
    assert task.outstanding_tasks == count
    assert task.outcome.is_told is ends_pass
    (told,) = (fields for _, _, fields in listener.calls)
    del told["self"]
    assert told == {
        "task": task.id,
        "node": -1,
        "queue": scene.other.id,
        "reentrant_depth": 2,
        "sequence_nr": 0,
        "queue_length": 2,
        "outstanding": count,
        "pushed_by": -1,
        "what": Push.WAKE_UP,
    }


def test_an_owner_notified_of_the_end_stays_notified():
    scene, task = Scene(), new_graph_task()

    push_wake_up(scene.worker, task, ends_pass=True)
    push_wake_up(scene.worker, task, ends_pass=False)

    assert task.outcome.is_told


class TestTorn:
    """F11: an error struck the engine's own code on a device's thread."""

    def torn(self, **settings: Any) -> tuple[Scene, GraphTask, BaseException]:
        scene, error, passes = Scene(), MemoryError(), Passes(THREADS)
        task = new_graph_task(owner=settings.pop("owner", CPU_DEVICE))
        task.outcome.begin_help(scene.worker)
        for name, value in settings.items():
            setattr(task if hasattr(task, name) else task.outcome, name, value)
        passes.begin(task)
        scene.queue.push_own(NodeTask(task, Sink(), [], 0))
        scene.queue.push(NodeTask(task, Sink(), [], 0))
        scene.worker.current_depth = 3
        fail_torn_passes(scene.worker, scene.queue, passes, error)
        return scene, task, error

    @pytest.mark.parametrize(
        "settings", [{"devices": frozenset({0, 1})}, {"owner": 0}], ids=str
    )
    def test_a_pass_that_has_work_for_the_device_fails(self, settings: dict[str, Any]):
        _, task, error = self.torn(**settings)

        assert isinstance(task.outcome.error, EngineError)
        assert task.outcome.error.__cause__ is error
        assert str(task.outcome.error) == (
            "the thread of device 0 was struck by MemoryError in the engine's own "
            "code; the pass cannot go on"
        )
        assert task.outcome.is_torn.value
        assert task.outcome.is_told
        assert task.outcome.helpers == []

    def test_one_that_has_none_does_not(self):
        _, task, _ = self.torn(devices=frozenset({1}))

        assert (
            task.outcome.error,
            task.outcome.is_torn.value,
            task.outcome.is_told,
        ) == (None, False, False)
        assert task.outcome.helpers == []

    @pytest.mark.parametrize("name", ["is_told", "is_done"])
    def test_an_owner_that_knows_of_the_end_is_not_told_again(self, name: str):
        _, task, _ = self.torn(devices=frozenset({0}), **{name: True})

        assert task.outcome.error is not None
        assert task.cpu_ready_queue.is_empty()

    def test_the_thread_begins_anew_with_an_empty_queue(self):
        scene, _, _ = self.torn()

        assert scene.queue.is_empty()
        assert scene.worker.ready_queue is scene.queue
        assert (scene.worker.worker_device, scene.worker.current_depth) == (0, 0)
