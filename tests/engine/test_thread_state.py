"""What the engine remembers of a thread."""

import threading
from typing import Any

from gradviz.engine.graph_task import NO_DEVICE, ExecInfo
from gradviz.engine.thread_state import ThreadState
from tests.engine.nodes import Sink, new_graph_task


def test_a_new_thread_is_in_no_backward():
    """L10: the thread-locals and their first values."""
    state = ThreadState()

    assert state.worker_device == NO_DEVICE
    assert state.ready_queue is None
    assert (state.current_depth, state.total_depth) == (0, 0)
    assert (state.graph_task, state.node) == (None, None)
    assert state.is_checkpoint_valid
    assert (state.has_count, state.in_user_code) == (True, True)
    assert not state.is_interrupted
    assert state.calls == []
    assert state.thread_id == threading.get_ident()
    assert state.thread_name == threading.current_thread().name


def all_of(state: ThreadState) -> dict[str, Any]:
    names = set(ThreadState.__slots__) - {"__weakref__"}
    return {name: getattr(state, name) for name in names}


def test_who_begins_to_work_for_the_engine_begins_anew():
    """F11: whatever an error has left behind."""
    state, task = ThreadState(), new_graph_task()
    before = all_of(state)
    for name in before.keys() - {"calls", "thread_id", "thread_name"}:
        setattr(state, name, "left behind")
    state.calls.append((task, None))

    state.serve(task.cpu_ready_queue, 1, 62)

    assert all_of(state) == before | {
        "worker_device": 1,
        "ready_queue": task.cpu_ready_queue,
        "total_depth": 62,
        "in_user_code": False,
    }


def test_without_a_depth_it_begins_at_none():
    state, task = ThreadState(), new_graph_task()

    state.serve(task.cpu_ready_queue, 0)

    assert state.total_depth == 0


def test_what_a_call_changes_can_be_put_back():
    """R7."""
    state, task, node = ThreadState(), new_graph_task(), Sink()
    state.worker_device, state.total_depth, state.current_depth = 1, 62, 2
    state.graph_task, state.node, state.are_outer_unrestricted = task, node, False

    assert state.saved() == (1, 62, 2, task, node, False)


def test_a_checkpoint_is_valid_where_no_pass_on_the_stack_is_restricted():
    """K1."""
    state = ThreadState()
    state.graph_task = new_graph_task()
    assert state.is_checkpoint_valid

    state.graph_task.exec_info = {Sink(): ExecInfo()}
    assert not state.is_checkpoint_valid

    state.graph_task, state.are_outer_unrestricted = new_graph_task(), False
    assert not state.is_checkpoint_valid
