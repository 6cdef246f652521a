"""The tests of the tests: an engine with a planted bug must fail under some schedule.

A mutant is a change of one function's source. It is compiled and put in place of that
function's code, so it acts wherever the function is called from. A mutant that no
longer fits the source is an error: write it anew for what the code has become.
"""

import importlib
import inspect
import textwrap
from dataclasses import dataclass
from types import CodeType, FunctionType

import pytest

from gradviz.compiled_core import compiled
from gradviz.testing.exploration import ScheduleFailed, explore, mixed
from gradviz.testing.fiber import ScheduleError
from tests.interleavings.scenarios import SCENARIOS
from tests.sampled import sampled

pytestmark = pytest.mark.skipif(
    compiled, reason="a mutant is put in place of a function's bytecode"
)

#: Within how many schedules of its scenario a mutant must be found.
MAX_SCHEDULES = 2000


@dataclass(frozen=True)
class Mutant:
    """One planted bug.

    Attributes:
        name: What is wrong, as the id of its test.
        scenario: Who must find it.
        patches: ``module:qualified name`` of a function within `gradviz.engine`, and
            its edits: pairs of text, of which the first must occur exactly once.
    """

    name: str
    scenario: str
    patches: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]


def mutant(name: str, scenario: str, *patches: tuple[str, ...]) -> Mutant:
    """Each patch is a function, then what to replace by what, in turn."""
    return Mutant(
        name,
        scenario,
        tuple(
            (function, tuple(zip(texts[::2], texts[1::2], strict=True)))
            for function, *texts in patches
        ),
    )


# In comments: what the classical bug of such engines is, where ours cannot have it.
MUTANTS = (
    mutant(
        "the sleeping owner is not woken",
        "the_device_ends_the_pass",
        (
            "threads.completion:push_wake_up",
            "        queue.push(task)",
            "        if not ends_pass:\n            queue.push(task)",
        ),
    ),
    # Classical: a queue's emptiness is checked outside of its lock. A mailbox has no
    # such check; this is the same mistake where we do check something under a lock.
    mutant(
        "gradients arrive without the lock",
        "three_threads_add",
        ("threads.handover:arrive", "with graph_task.mutex:", "if True:"),
        (
            "threads.handover:_arrive",
            "    if remaining < 0:",
            "    graph_task.outcome.has_error.value\n    if remaining < 0:",
        ),
    ),
    # Classical: notify before push. A mailbox's put is both.
    mutant(
        "the owner is woken before the callbacks have run",
        "a_callback_calls_backward",
        (
            "threads.completion:mark_as_completed_and_run_post_processing",
            "    try:\n        if worker is graph_task.home:",
            (
                "    if worker.worker_device != graph_task.owner:\n"
                "        push_wake_up(worker, graph_task, ends_pass=True)\n"
                "    try:\n        if worker is graph_task.home:"
            ),
            "    else:\n        push_wake_up(worker, graph_task, ends_pass=True)",
            "",
        ),
    ),
    mutant(
        "the count of outstanding tasks is not atomic",
        "there_and_back",
        (
            "tasks.graph_task:GraphTask.finish_one",
            (
                "    with self.mutex:\n"
                "        self.outstanding_tasks -= 1\n"
                "        return self.outstanding_tasks == 0"
            ),
            (
                "    left = self.outstanding_tasks - 1\n"
                "    self.has_error.value\n"
                "    self.outstanding_tasks = left\n"
                "    return left == 0"
            ),
        ),
    ),
    mutant(
        "whether a task is the last is asked before it is counted",
        "there_and_back",
        (
            "tasks.graph_task:GraphTask.finish_one",
            (
                "    with self.mutex:\n"
                "        self.outstanding_tasks -= 1\n"
                "        return self.outstanding_tasks == 0"
            ),
            (
                "    is_last = self.outstanding_tasks == 1\n"
                "    with self.mutex:\n"
                "        self.outstanding_tasks -= 1\n"
                "    return is_last"
            ),
        ),
    ),
    mutant(
        "two threads complete one pass",
        "there_and_back",
        (
            "tasks.graph_task:GraphTask.finish_one",
            (
                "    with self.mutex:\n"
                "        self.outstanding_tasks -= 1\n"
                "        return self.outstanding_tasks == 0"
            ),
            (
                "    with self.mutex:\n"
                "        self.outstanding_tasks -= 1\n"
                "    return self.outstanding_tasks == 0"
            ),
        ),
    ),
    mutant(
        "the wake-up goes to another queue than the owner's",
        "the_device_ends_the_pass",
        (
            "threads.completion:push_wake_up",
            "queues.queue_at(graph_task, graph_task.owner, worker)",
            "queues.queue_at(graph_task, 0, worker)",
        ),
    ),
    mutant(
        "the wake-up of a failed pass is not counted",
        "an_error_on_a_device",
        (
            "threads.completion:push_wake_up",
            "graph_task.outstanding_tasks += 1",
            "pass",
        ),
    ),
    mutant(
        "a node runs although its pass has failed",
        "an_error_while_pushing",
        (
            "threads.thread_main:_evaluate",
            "    if graph_task.outcome.has_error.value:",
            "    if False:",
        ),
    ),
    mutant(
        "the pool makes one thread too few",
        "nested_at_the_limit",
        (
            "threads.thread_pool:ThreadPool.run",
            "self.num_threads < len(self._waiting | self._served)",
            "self.num_threads < len(self._waiting | self._served) - 1",
        ),
    ),
    mutant(
        "a thread of the pool consumes a queue of its own",
        "nested_at_the_limit",
        (
            "threads.thread_pool:ThreadPool._stand_in",
            "self._queues.queue_at(graph_task, graph_task.owner, worker)",
            "self._queues.new_caller_queue()",
        ),
    ),
    mutant(
        "threads of the pool nest without limit",
        "nested_at_the_limit",
        (
            "threads.worker:Worker.serve",
            "self.current_depth = 0",
            "self.current_depth = -1000",
        ),
    ),
    # Classical: a shutdown overtakes work that is queued. Ours is not even pushed
    # while a pass is under way.
    mutant(
        "threads are stopped while a pass is under way",
        "stopped_while_busy",
        (
            "tasks.passes_under_way:Passes.stop",
            "while self.under_way():",
            "while False:",
        ),
    ),
    # Classical: a nested loop takes the shutdown. See above; what a nested loop of
    # ours can take is the wake-up of another pass.
    mutant(
        "a nested loop takes the end of another pass for its own",
        "nested_side_by_side",
        (
            "threads.thread_main:thread_main",
            "            popped.outcome.is_done = True",
            "            (graph_task or popped).is_done = True",
        ),
    ),
    mutant(
        "nobody waits for a device's thread to start",
        "the_device_ends_the_pass",
        (
            "threads.device_threads:DeviceThreads._wait_for_start",
            "while not self._start.is_over.value:",
            "while False:",
        ),
    ),
    mutant(
        "each thing that arrives gives a failed pass more time",
        "an_error_while_a_device_hangs",
        (
            "tasks.outcome:Outcome.time_left",
            "if self.deadline_ns is None:",
            "if True:",
        ),
    ),
    mutant(
        "the thread's state is put back only if all went well",
        "an_interruption_while_nested",
        (
            "threads.execution:execute_with_graph_task",
            "    finally:\n        (",
            "    except ZeroDivisionError:\n        pass\n    else:\n        (",
        ),
    ),
    # Classical: an event of a stream is recorded after the push. Mutants of streams are
    # in test_stream_mutants.py; this is a gradient that is overwritten in its buffer.
    mutant(
        "a sum overwrites what has arrived meanwhile",
        "three_threads_add",
        (
            "threads.handover:_arrive",
            "elif gradient is not None and buffer[input_nr] is not None:",
            (
                "elif gradient is not None and how is How.FIRST"
                " and buffer[input_nr] is not None:"
            ),
        ),
    ),
    mutant(
        "a gradient that others see is added to in place",
        "one_gradient_for_three",
        (
            "graph.input_buffer:add",
            "        and is_sole_reference(buffer, index)\n",
            "",
        ),
    ),
    mutant(
        "the short way forgets what has come before",
        "two_callers_share_a_graph",
        (
            "threads.handover:hand_on",
            "            and receiver not in graph_task.not_ready\n",
            "",
        ),
    ),
    mutant(
        "on the short way a count is passed on twice",
        "two_callers_share_a_graph",
        (
            "threads.worker:Worker.push_own",
            "        self.has_count = False",
            "        self.has_count = True",
        ),
    ),
    mutant(
        "a task that has passed its count on is counted as done",
        "there_and_back",
        (
            "threads.thread_main:thread_main",
            "if worker.has_count and popped.finish_one():",
            "if popped.finish_one():",
        ),
    ),
    mutant(
        "a count is passed on to another thread",
        "two_devices_meet",
        (
            "threads.worker:Worker.push",
            "    graph_task.outstanding_tasks += 1",
            (
                "    graph_task.outstanding_tasks += not self.has_count\n"
                "    self.has_count = False"
            ),
        ),
    ),
    mutant(
        "a call returns while a node of it runs on another thread",
        "an_interruption_beside_devices",
        (
            "tasks.outcome:Outcome.begin_help",
            "self.helpers.append(state)",
            "pass",
        ),
    ),
    mutant(
        "a pass looks whether the engine was stopped before it is known to it",
        "stopped_while_busy",
        (
            "tasks.passes_under_way:Passes.begin",
            (
                "    self._under_way[graph_task.id] = graph_task\n"
                "    if self._is_stopped.value and graph_task.parent is None:\n"
            ),
            (
                "    is_stopped = self._is_stopped.value\n"
                "    self._under_way[graph_task.id] = graph_task\n"
                "    if is_stopped and graph_task.parent is None:\n"
            ),
        ),
    ),
    mutant(
        "tasks of an interrupted pass stay for the next one",
        "an_interruption_alone",
        (
            "threads.execution:execute_with_graph_task",
            "worker.is_interrupted = True\n            if saved[0] == NO_DEVICE:",
            "worker.is_interrupted = True\n            if False:",
        ),
    ),
)


def find(path: str) -> FunctionType:
    """The function itself, without its decorators."""
    module_name, _, qualified_name = path.partition(":")
    found = importlib.import_module(f"gradviz.engine.{module_name}")
    for name in qualified_name.split("."):
        found = getattr(found, name)
    return inspect.unwrap(found)


def mutated_code(
    function: FunctionType, edits: tuple[tuple[str, str], ...]
) -> CodeType:
    """The code of a function whose source was edited."""
    source = textwrap.dedent(inspect.getsource(function))
    for old, new in edits:
        assert source.count(old) == 1, (
            f"this mutant no longer fits: {function.__qualname__} has "
            f"{source.count(old)} times\n{old}"
        )
        source = source.replace(old, new)
    compiled = compile(source, f"<mutant of {function.__qualname__}>", "exec")
    namespace: dict[str, FunctionType] = {}
    exec(compiled, function.__globals__, namespace)
    return inspect.unwrap(namespace[function.__name__]).__code__


@pytest.mark.parametrize("mutant", sampled(MUTANTS, 2), ids=lambda mutant: mutant.name)
def test_a_mutant_is_found(mutant, monkeypatch):
    scenario = SCENARIOS[mutant.scenario]
    for path, edits in mutant.patches:
        function = find(path)
        monkeypatch.setattr(function, "__code__", mutated_code(function, edits))

    with pytest.raises(ScheduleFailed) as caught:
        explore(scenario, mixed(scenario, MAX_SCHEDULES))

    failure = caught.value.run.failure
    assert isinstance(failure, ScheduleError)
    assert not isinstance(failure.__cause__, NameError), "the mutant itself is wrong"


def test_there_are_at_least_twenty_mutants():
    assert len({mutant.name for mutant in MUTANTS}) >= 20


def test_a_mutant_that_no_longer_fits_is_an_error():
    function = find("tasks.graph_task:GraphTask.finish_one")

    with pytest.raises(AssertionError, match="this mutant no longer fits"):
        mutated_code(function, (("what is not there", ""),))
