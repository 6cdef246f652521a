"""The two switches of a context."""

from gradviz.engine.graph.grad_mode import (
    GRAD_ENABLED,
    MULTITHREADING_ENABLED,
    is_grad_enabled,
    is_multithreading_enabled,
)
from tests.engine.nodes import in_thread


def test_both_are_on_unless_switched_off():
    """K5."""
    assert is_grad_enabled()
    assert is_multithreading_enabled()


def test_a_new_thread_starts_with_both_on():
    """K5: as thread-locals would."""
    GRAD_ENABLED.set(False)
    MULTITHREADING_ENABLED.set(False)
    try:
        assert not is_grad_enabled()
        assert not is_multithreading_enabled()
        assert in_thread(lambda: (is_grad_enabled(), is_multithreading_enabled())) == (
            True,
            True,
        )
    finally:
        GRAD_ENABLED.set(True)
        MULTITHREADING_ENABLED.set(True)
