"""Effects of `execute` on its thread, and giving up a pass."""

from typing import Any

import pytest

from gradviz.engine import Node, PyTorchSchedule
from gradviz.engine.graph import anomaly
from gradviz.engine.graph.grad_mode import GRAD_ENABLED
from gradviz.engine.graph.sync import THREADS, Sync
from gradviz.engine.tasks.device_queues import DeviceQueues
from gradviz.engine.tasks.graph_task import CPU_DEVICE, GraphTask, WakeUp
from gradviz.engine.threads.execution import execute_with_graph_task
from gradviz.testing import Scheduler, Scripted, sleep
from gradviz.trace.probe import Role
from tests.engine.nodes import Call, Listener, Sink, new_graph_task, new_worker
from tests.engine.threads.test_worker import all_of


class Interrupt(BaseException):
    """Stands for a KeyboardInterrupt, which would end the tests if one got through."""


def unexpected(graph_task: GraphTask) -> None:
    raise AssertionError("the pool was asked")


class Scene:
    """A pass and the thread that calls for it, inside another pass or not."""

    def __init__(
        self, *, is_nested: bool, sync: Sync = THREADS, listener: Any = None
    ) -> None:
        self.sync = sync
        self.queues = DeviceQueues(sync, PyTorchSchedule)
        self.queues.add(self.queues.new_device_queue())
        self.worker = new_worker(sync, self.queues)
        self.outer, self.outer_node = new_graph_task(sync), Sink()
        self.task = new_graph_task(
            sync,
            home=self.worker,
            owner=0 if is_nested else CPU_DEVICE,
            parent=self.outer if is_nested else None,
            reentrant_depth=5 if is_nested else 0,
            probe=listener,
        )
        self.worker.ready_queue = self.queue = self.task.cpu_ready_queue
        if is_nested:
            (self.queue,) = self.queues
            self.task.cpu_ready_queue = self.queue
            self.worker.serve(self.queue, 0, 4)
            self.worker.current_depth = 2
            self.worker.graph_task, self.worker.node = self.outer, self.outer_node
            self.worker.in_user_code = True

    def call(
        self, root: Node, *, max_depth: int = 60, run_in_pool: Any = unexpected
    ) -> None:
        execute_with_graph_task(
            self.worker,
            max_depth,
            run_in_pool,
            self.task,
            root,
            [1],
        )


@pytest.mark.parametrize("is_nested", [True, False])
class TestTheThread:
    """R7, RE1-RE3."""

    def test_works_for_the_pass_and_is_then_as_it_was(self, is_nested: bool):
        scene, seen = Scene(is_nested=is_nested), {}
        before = all_of(scene.worker)

        def look(grad: Any) -> Any:
            seen.update(all_of(scene.worker) | {"calls": list(scene.worker.calls)})
            return ()

        node = Call(look)
        scene.call(node)

        assert seen == before | {
            "worker_device": scene.task.owner,
            "current_depth": 3 if is_nested else 0,
            "total_depth": 5 if is_nested else 0,
            "graph_task": scene.task,
            "node": node,
            "calls": [(scene.outer, scene.outer_node)] if is_nested else [],
        }
        assert all_of(scene.worker) == before
        assert scene.queue.is_empty()

    def test_is_as_it_was_after_an_interrupt_that_a_node_did_not_see(
        self, is_nested: bool
    ):
        """And throws its queue away, or says that those below it must."""

        class Striking(Listener):
            def task_pushed(self, *args: Any) -> None:
                raise Interrupt

        scene = Scene(is_nested=is_nested, listener=Striking())
        before = all_of(scene.worker)
        mode, evaluating = GRAD_ENABLED.get(), anomaly.EVALUATING.get()

        with pytest.raises(Interrupt):
            scene.call(Sink())

        assert all_of(scene.worker) == before | {
            "ready_queue": scene.queue if is_nested else None,
            "is_interrupted": is_nested,
        }
        assert GRAD_ENABLED.get() is mode
        assert anomaly.EVALUATING.get() is evaluating

    def test_runs_its_nodes_in_the_mode_of_the_pass_and_has_its_own_again(
        self, is_nested: bool
    ):
        """G8."""
        scene, modes, token = Scene(is_nested=is_nested), [], GRAD_ENABLED.set(True)
        try:
            scene.call(Call(lambda grad: modes.append(GRAD_ENABLED.get()) or ()))
            modes.append(GRAD_ENABLED.get())
        finally:
            GRAD_ENABLED.reset(token)

        assert modes == [False, True]

    def test_tells_when_it_comes_and_goes(self, is_nested: bool):
        """L5, RE1."""
        listener = Listener()
        scene = Scene(is_nested=is_nested, listener=listener)

        scene.call(Sink())

        told = [
            (method, [value for key, value in fields.items() if key != "self"])
            for _, method, fields in listener.calls
        ]
        if is_nested:
            first, last = "reentrant_entered", "reentrant_left"
            what: list[object] = [scene.task.id, 5]
        else:
            first, last = "thread_started", "thread_exited"
            what = [CPU_DEVICE, Role.CALLER]
        assert (told[0], told[-1]) == ((first, what), (last, what))


class TestNested:
    """RE3, RE4."""

    @pytest.mark.parametrize(("max_depth", "is_pooled"), [(2, True), (3, False)])
    def test_beyond_the_limit_the_pool_is_asked(self, max_depth: int, is_pooled: bool):
        scene, asked = Scene(is_nested=True), []

        def run_in_pool(graph_task: GraphTask) -> None:
            asked.append(graph_task)
            graph_task.outcome.is_done = True

        scene.call(Sink(), max_depth=max_depth, run_in_pool=run_in_pool)

        assert asked == [scene.task] * is_pooled

    @pytest.mark.parametrize("is_restricted", [True, False])
    def test_a_checkpoint_knows_of_the_passes_below(self, is_restricted: bool):
        """K1."""
        scene, seen = Scene(is_nested=True), []
        if is_restricted:
            scene.outer.exec_info = {Sink(): None}  # type: ignore[dict-item]
        node = Call(lambda grad: seen.append(scene.worker.is_checkpoint_valid) or ())

        scene.call(node)

        assert seen == [not is_restricted]

    def test_a_node_below_is_again_the_one_that_is_evaluated(self):
        """`detect_anomaly`: what it makes now is blamed on it."""
        scene = Scene(is_nested=True)
        outer = anomaly.EVALUATING.set(scene.outer_node)
        try:
            scene.call(Call(lambda grad: anomaly.EVALUATING.set(None) and ()))
            assert anomaly.EVALUATING.get() is scene.outer_node
        finally:
            anomaly.EVALUATING.reset(outer)


def interrupted(graph_task: GraphTask) -> None:
    raise Interrupt


class TestGivingUp:
    """F04, F05: a pass whose tasks can no longer be counted."""

    def test_it_and_the_pass_of_the_calling_node_fail(self):
        """The node may swallow the error: its pass is lost all the same."""
        scene = Scene(is_nested=True)

        with pytest.raises(Interrupt) as caught:
            scene.call(Sink(), max_depth=0, run_in_pool=interrupted)

        assert scene.task.outcome.error is scene.outer.outcome.error is caught.value

    @pytest.mark.parametrize("is_told", [True, False])
    def test_a_stand_in_is_told_of_the_end_once(self, is_told: bool):
        scene = Scene(is_nested=True)

        def run_in_pool(graph_task: GraphTask) -> None:
            if is_told:
                graph_task.outcome.claim_end()
            raise Interrupt

        with pytest.raises(Interrupt):
            scene.call(Sink(), max_depth=0, run_in_pool=run_in_pool)

        (root, *more) = (scene.queue.pop() for _ in range(len(scene.queue)))
        if is_told:
            assert more == []
        else:
            assert isinstance(root, WakeUp)  # it comes before all work
            assert (root.graph_task, root.ends_pass) == (scene.task, True)

    @pytest.mark.parametrize(
        ("helps", "leaves_after", "seconds"),
        [(False, 0, 0.0), (True, 2, 2.0), (True, 9, 5.0)],
    )
    def test_nodes_that_run_elsewhere_are_waited_for_within_limits(
        self, helps: bool, leaves_after: int, seconds: float
    ):
        ended: list[float] = []

        def run_in_pool(graph_task: GraphTask) -> None:
            if helps:
                graph_task.outcome.begin_help("another thread")
            graph_task.outcome.set_error(ValueError("mine"), None)

        def call() -> None:
            scene.call(Sink(), max_depth=0, run_in_pool=run_in_pool)
            ended.append(scheduler.fibers.now_ns / 1e9)

        def leave() -> None:
            sleep(leaves_after)
            scene.task.outcome.end_help("another thread")

        with Scheduler(Scripted({})) as scheduler:
            scene = Scene(is_nested=True, sync=scheduler)
            scheduler.run(caller=call, other=leave)

        assert ended == [seconds]

    def test_a_caller_throws_away_the_queue_of_a_torn_pass(self):
        """F11: a device's thread was struck."""
        scene = Scene(is_nested=False)

        def tear(grad: Any) -> Any:
            scene.task.outcome.is_torn.value = True
            return ()

        scene.call(Call(tear))

        assert scene.worker.ready_queue is None

    def test_a_nested_call_keeps_its_queue_for_the_passes_below(self):
        scene = Scene(is_nested=True)

        scene.call(Sink(), max_depth=0, run_in_pool=lambda graph_task: None)

        assert scene.worker.ready_queue is scene.queue


def test_a_caller_that_is_struck_before_it_began_is_in_no_backward():
    """R7: a listener stands for a signal handler."""

    class Striking(Listener):
        def thread_started(self, device: int, role: Role) -> None:
            raise Interrupt

    scene = Scene(is_nested=False, listener=Striking())
    before = all_of(scene.worker)

    with pytest.raises(Interrupt):
        scene.call(Sink())

    # Its queue is not used again: nobody can tell what is in it.
    assert all_of(scene.worker) == before | {"ready_queue": None}
