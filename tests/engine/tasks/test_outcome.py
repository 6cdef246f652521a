"""The end of a pass: once, and with notice to all."""

from collections.abc import Callable
from typing import Any

import pytest

from gradviz.engine.graph.sync import THREADS
from gradviz.engine.tasks.outcome import Outcome, describe
from gradviz.trace.probe import Probe
from tests.engine.nodes import Listener, Sink, WatchingLock


def new_outcome(probe: Probe | None = None) -> Outcome:
    return Outcome(THREADS, 7, THREADS.lock(), probe)


class TestErrors:
    def test_the_first_error_wins(self):
        """R1, R2."""
        outcome, first, second = (
            new_outcome(),
            ValueError("first"),
            ValueError("second"),
        )

        assert outcome.set_error(first, None)
        assert not outcome.set_error(second, None)

        assert outcome.error is first
        assert outcome.has_error.value

    def test_only_the_first_error_is_reported_with_its_node(self):
        """R1."""
        listener, node = Listener(), Sink()
        outcome = new_outcome(probe=listener)

        outcome.set_error(ValueError("first"), node)
        outcome.set_error(ValueError("second"), None)

        failures = listener.of("task_failed", "task", "node", "error")
        assert failures == [(outcome.task_id, node.id, "ValueError: first")]

    def test_an_error_of_no_node_is_reported_without_one(self):
        listener = Listener()
        outcome = new_outcome(probe=listener)

        outcome.set_error(KeyboardInterrupt(), None)

        failures = listener.of("task_failed", "node", "error")
        assert failures == [(-1, "KeyboardInterrupt")]

    def test_an_error_is_described_in_one_line(self):
        assert describe(ValueError("one\ntwo")) == "ValueError: one"
        assert describe(KeyboardInterrupt()) == "KeyboardInterrupt"

    def test_an_error_that_comes_after_the_end_is_none_of_the_pass(self):
        """P1: its caller may have its results by then."""
        listener = Listener()
        outcome = new_outcome(probe=listener)
        outcome.complete()

        assert not outcome.set_error(ValueError("late"), None)

        assert outcome.error is None
        assert not outcome.has_error.value
        assert listener.of("task_failed", "error") == []


class TestTheEnd:
    """P1."""

    def test_a_pass_without_an_error_completes(self):
        listener = Listener()
        outcome = new_outcome(probe=listener)
        assert not outcome.is_complete

        outcome.complete()

        assert outcome.is_complete
        assert listener.of("task_completed", "task") == [outcome.task_id]

    def test_a_failed_pass_never_completes(self):
        listener = Listener()
        outcome = new_outcome(probe=listener)
        outcome.set_error(ValueError("mine"), None)

        outcome.complete()

        assert not outcome.is_complete
        assert listener.of("task_completed", "task") == []

    def test_one_thread_may_tell_the_owner_of_it(self):
        outcome = new_outcome()

        assert [outcome.claim_end() for _ in range(3)] == [True, False, False]

    def test_the_time_of_a_failed_pass_begins_once(self):
        """F05: five seconds in all, however often somebody asks."""
        outcome, second = new_outcome(), 1_000_000_000

        left = [outcome.time_left((100 + after) * second) for after in (0, 2, 4, 5, 7)]

        assert left == [5.0, 3.0, 1.0, 0.0, 0.0]


class TestHelpers:
    """Threads other than the caller's that run nodes of a pass."""

    def test_no_node_begins_on_one_once_the_pass_has_failed(self):
        """R3."""
        outcome = new_outcome()
        assert outcome.begin_help("a")
        outcome.set_error(ValueError("mine"), None)

        assert not outcome.begin_help("b")

        assert outcome.helpers == ["a"]

    def test_one_that_runs_two_nodes_ends_them_one_by_one(self):
        """M6: a nested loop may run another node of the same pass."""
        outcome = new_outcome()
        for helper in ("a", "b", "a"):
            outcome.begin_help(helper)

        outcome.end_help("a")

        assert outcome.helpers == ["b", "a"]

    def test_a_helper_that_was_forgotten_may_end_all_the_same(self):
        outcome = new_outcome()
        outcome.begin_help("a")
        outcome.begin_help("b")
        outcome.forget_helper("a")

        outcome.end_help("a")

        assert outcome.helpers == ["b"]

    def test_one_that_was_struck_runs_none_of_its_nodes_any_more(self):
        """F11."""
        outcome = new_outcome()
        for helper in ("a", "b", "a"):
            outcome.begin_help(helper)

        outcome.forget_helper("a")

        assert outcome.helpers == ["b"]

    @pytest.mark.parametrize("leave", [Outcome.end_help, Outcome.forget_helper])
    def test_the_last_of_a_failed_pass_says_that_it_is_quiet(
        self, leave: Callable[[Outcome, object], None]
    ):
        """F05: who waits for the nodes of a failed pass is woken."""
        outcome = new_outcome()
        outcome.begin_help("a")
        outcome.begin_help("b")
        outcome.set_error(ValueError("mine"), None)

        leave(outcome, "a")
        assert outcome.quiet.empty()
        leave(outcome, "b")
        assert outcome.quiet.qsize() == 1

    @pytest.mark.parametrize("leave", [Outcome.end_help, Outcome.forget_helper])
    def test_a_pass_that_goes_well_tells_nobody(
        self, leave: Callable[[Outcome, object], None]
    ):
        outcome = new_outcome()
        outcome.begin_help("a")

        leave(outcome, "a")

        assert outcome.quiet.empty()


class TestTheMutex:
    """N4: what several threads change is changed under the mutex, and only there."""

    @pytest.mark.parametrize(
        "change",
        [
            lambda outcome: outcome.set_error(ValueError(), None),
            Outcome.claim_end,
            Outcome.complete,
            lambda outcome: outcome.begin_help("b"),
            lambda outcome: outcome.end_help("a"),
            lambda outcome: outcome.forget_helper("a"),
        ],
    )
    def test_it_is_held_while_the_pass_changes(self, change: Callable[[Outcome], Any]):
        outcome = new_outcome()
        outcome.begin_help("a")

        def look() -> object:
            return (
                outcome.error,
                outcome.has_error.value,
                outcome.is_complete,
                outcome.is_ended,
                tuple(outcome.helpers),
            )

        before = look()
        outcome.mutex = lock = WatchingLock(look)

        change(outcome)

        assert lock.num_taken == 1
        assert look() == lock.free != before
