"""Passes under way, and an engine's wait for them when it stops."""

from collections.abc import Iterator

import pytest

from gradviz.engine.graph.sync import THREADS, Threads
from gradviz.engine.tasks.graph_task import GraphTask
from gradviz.engine.tasks.passes_under_way import Passes
from gradviz.errors import EngineError
from gradviz.testing import Scheduler, Scripted, sleep
from tests.engine.nodes import new_graph_task

SECOND = 1_000_000_000


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    """Time passes only where somebody sleeps."""
    with Scheduler(Scripted({})) as scheduler:
        yield scheduler


def begun(passes: Passes, *, parent: GraphTask | None = None) -> GraphTask:
    task = new_graph_task(parent=parent)
    passes.begin(task)
    return task


class TestUnderWay:
    def test_those_that_have_begun_are_told_oldest_first(self):
        """RE8."""
        passes = Passes(THREADS)

        first, second = begun(passes), begun(passes)

        assert passes.under_way() == (first, second)

    def test_those_that_are_forgotten_are_over(self):
        passes = Passes(THREADS)
        first, second = begun(passes), begun(passes)

        passes.forget(first.id, None)
        passes.forget(first.id, None)

        assert passes.under_way() == (second,)

    def test_a_forked_child_does_not_wait_for_its_parents(self):
        """F13, L9: a fork does not copy the threads that run them."""
        process_id = 1

        class Forking(Threads):
            def process_id(self) -> int:
                return process_id

        passes = Passes(Forking())
        begun(passes)
        assert len(passes.under_way()) == 1

        process_id = 2

        assert passes.under_way() == ()
        own = begun(passes)
        assert passes.under_way() == (own,)

    def test_a_forked_child_that_starts_with_a_pass_of_its_own_sees_only_that_one(self):
        process_id = 1

        class Forking(Threads):
            def process_id(self) -> int:
                return process_id

        passes = Passes(Forking())
        begun(passes)
        process_id = 2

        own = begun(passes)

        assert passes.under_way() == (own,)


class TestStopping:
    """L7."""

    def test_without_passes_there_is_nothing_to_wait_for(self):
        passes = Passes(THREADS)
        assert not passes.are_over

        assert passes.stop(THREADS.now_ns())

        assert passes.are_over

    def test_no_pass_begins_afterwards_and_who_tries_may_be_forgotten(self):
        passes, late = Passes(THREADS), new_graph_task()
        passes.stop(THREADS.now_ns())

        with pytest.raises(EngineError, match="the engine was stopped"):
            passes.begin(late)
        passes.forget(late.id, None)

        assert passes.are_over

    def test_one_inside_another_that_is_under_way_begins_all_the_same(self):
        """Or that one could not end."""
        passes = Passes(THREADS)
        outer = begun(passes)
        assert not passes.stop(THREADS.now_ns())

        inner = begun(passes, parent=outer)

        assert passes.under_way() == (outer, inner)
        assert not passes.are_over

    def test_a_stop_sleeps_until_the_last_pass_is_over(self, scheduler: Scheduler):
        passes = Passes(scheduler)
        first, second = begun(passes), begun(passes)
        outcomes: list[tuple[bool, int]] = []

        def stop() -> None:
            is_over = passes.stop(10 * SECOND)
            outcomes.append((is_over, scheduler.fibers.now_ns))

        def end() -> None:
            for task in (first, second):
                sleep(2)
                passes.forget(task.id, None)
                passes.tell_idle()

        scheduler.run(stop=stop, end=end)

        assert outcomes == [(True, 4 * SECOND)]

    def test_a_stop_sleeps_no_longer_than_its_deadline(self, scheduler: Scheduler):
        passes = Passes(scheduler)
        begun(passes)
        outcomes: list[tuple[bool, int]] = []

        def stop() -> None:
            sleep(1)
            is_over = passes.stop(3 * SECOND)
            outcomes.append((is_over, scheduler.fibers.now_ns))

        scheduler.run(stop=stop)

        assert outcomes == [(False, 3 * SECOND)]

    def test_a_deadline_that_is_over_is_looked_at_once(self):
        passes = Passes(THREADS)
        begun(passes)

        assert not passes.stop(THREADS.now_ns() - SECOND)

    def test_a_pass_that_ended_without_a_word_is_seen_at_the_deadline(
        self, scheduler: Scheduler
    ):
        """F04: who was interrupted has forgotten its pass, and told nobody."""
        passes = Passes(scheduler)
        task = begun(passes)
        outcomes: list[bool] = []

        def end() -> None:
            sleep(1)
            passes.forget(task.id, None)

        scheduler.run(stop=lambda: outcomes.append(passes.stop(3 * SECOND)), end=end)

        assert outcomes == [True]

    def test_news_of_an_earlier_pass_ends_no_wait(self, scheduler: Scheduler):
        """Another thread of the program may have stopped the engine before."""
        passes = Passes(scheduler)
        outcomes: list[tuple[bool, int]] = []

        def stop() -> None:
            passes.stop(0)
            passes.tell_idle()
            outer = new_graph_task()
            begun(passes, parent=outer)
            is_over = passes.stop(2 * SECOND)
            outcomes.append((is_over, scheduler.fibers.now_ns))

        scheduler.run(stop=stop)

        assert outcomes == [(False, 2 * SECOND)]

    def test_nobody_is_told_before_the_last_one(self, scheduler: Scheduler):
        passes = Passes(scheduler)
        first, second = begun(passes), begun(passes)
        passes.tell_idle()
        assert passes._idle.empty()
        passes.stop(0)

        passes.forget(first.id, None)
        passes.tell_idle()
        assert passes._idle.empty()
        passes.forget(second.id, None)
        passes.tell_idle()

        assert passes._idle.qsize() == 1
