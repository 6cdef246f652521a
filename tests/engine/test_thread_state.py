"""What the engine remembers of a thread that is in no backward."""

from gradviz.engine.graph_task import NO_DEVICE
from gradviz.engine.thread_state import ThreadState


def test_a_new_thread_is_in_no_backward():
    """L10: the thread-locals and their first values."""
    state = ThreadState()

    assert state.worker_device == NO_DEVICE
    assert state.ready_queue is None
    assert (state.current_depth, state.total_depth) == (0, 0)
    assert (state.graph_task, state.node) == (None, None)
    assert state.is_checkpoint_valid
