import contextlib
import contextvars
import threading

import pytest

import gradviz as gv
from gradviz.engine import default_engine
from gradviz.engine.graph.sync import Empty, Local
from gradviz.testing.fiber import Deadlock, Livelock, ThreadDied
from gradviz.testing.fibers import MAX_SWITCHES
from gradviz.testing.policy import DepthFirst, RandomWalk, Scripted
from gradviz.testing.scheduler import Scheduler, pause, sleep


@pytest.fixture
def scheduler():
    """Threads run one after the other, as far as they can."""
    with Scheduler(Scripted({})) as scheduler:
        yield scheduler


def outcomes(program, bound):
    """All results of a program under schedules with so many preemptions."""
    search = DepthFirst(bound)
    found = set()
    for policy in search:
        with Scheduler(policy) as scheduler:
            found.add(program(scheduler))
            search.decisions = scheduler.fibers.decisions
    return found


# --- switching ----------------------------------------------------------------------


def test_without_preemption_threads_run_one_after_the_other(scheduler):
    ran = []

    def thread(name):
        ran.append(name)
        pause()
        ran.append(name)

    scheduler.run(a=lambda: thread("a"), b=lambda: thread("b"))

    assert ran == ["a", "a", "b", "b"]


def unguarded_sum(scheduler):
    total = 0

    def add():
        nonlocal total
        seen = total
        pause()
        total = seen + 1

    scheduler.run(a=add, b=add)
    return total


def guarded_sum(scheduler):
    total, lock = 0, scheduler.lock()

    def add():
        nonlocal total
        with lock:
            seen = total
            pause()
            total = seen + 1

    scheduler.run(a=add, b=add)
    return total


def test_a_race_shows_with_one_preemption():
    assert outcomes(unguarded_sum, bound=0) == {2}
    assert outcomes(unguarded_sum, bound=1) == {1, 2}


def test_a_lock_keeps_others_out_under_every_schedule():
    assert outcomes(guarded_sum, bound=3) == {2}


def test_a_flag_that_is_checked_and_then_set_lets_two_in():
    def claim_twice(scheduler):
        flag, claims = scheduler.flag(), []

        def claim():
            if not flag.value:
                flag.value = True
                claims.append(True)

        scheduler.run(a=claim, b=claim)
        return len(claims)

    assert outcomes(claim_twice, bound=1) == {1, 2}


def test_the_same_seed_gives_the_same_run():
    def run():
        with Scheduler(RandomWalk(7)) as scheduler:
            unguarded_sum(scheduler)
            return scheduler.fibers.decisions

    assert run() == run()


def test_each_thread_has_its_own_context_and_its_own_local(scheduler):
    variable = contextvars.ContextVar("variable", default="unset")
    variable.set("outside")
    local = scheduler.local(list)
    seen = []

    def thread(name):
        seen.append((variable.get(), list(local.get())))
        variable.set(name)
        local.get().append(name)
        pause()
        seen.append((variable.get(), list(local.get())))

    scheduler.run(a=lambda: thread("a"), b=lambda: thread("b"))

    assert seen == [("unset", []), ("a", ["a"]), ("unset", []), ("b", ["b"])]
    assert variable.get() == "outside"
    assert isinstance(local, Local)


# --- mailboxes ----------------------------------------------------------------------


def test_a_mailbox_hands_items_over_in_order_and_wakes_who_waits(scheduler):
    box, got = scheduler.mailbox(), []

    scheduler.run(
        taker=lambda: got.extend([box.get(), box.get()]),
        giver=lambda: [box.put(item) for item in (1, 2)],
    )

    assert got == [1, 2]
    assert box.empty()
    assert box.qsize() == 0


def test_a_mailbox_that_stays_empty_raises_when_the_time_is_over(scheduler):
    box = scheduler.mailbox()

    def wait():
        with pytest.raises(Empty):
            box.get(timeout=2.5)

    scheduler.run(waiter=wait)

    assert scheduler.fibers.now_ns == 2_500_000_000


def test_a_mailbox_that_must_not_block_raises_at_once(scheduler):
    box = scheduler.mailbox()

    def look():
        with pytest.raises(Empty):
            box.get(block=False)

    scheduler.run(looker=look)

    assert scheduler.fibers.now_ns == 0


def test_a_timeout_never_fires_while_somebody_can_still_put():
    def put_late(scheduler):
        box, got = scheduler.mailbox(), []

        def give():
            for _ in range(5):
                pause()
            box.put("in time")

        scheduler.run(taker=lambda: got.append(box.get(timeout=0.001)), giver=give)
        return got[0]

    assert outcomes(put_late, bound=2) == {"in time"}


def test_sleepers_wake_in_the_order_of_their_alarms(scheduler):
    woken = []

    def nap(seconds):
        sleep(seconds)
        woken.append((seconds, scheduler.now_ns()))

    scheduler.run(a=lambda: nap(3.0), b=lambda: nap(1.0), c=lambda: nap(2.0))

    assert woken == [(s, int(s * 1e9)) for s in (1.0, 2.0, 3.0)]


def test_a_thread_that_the_scheduler_did_not_start_leaves_its_clock_alone(scheduler):
    """A device's thread of an earlier test may end now and call a listener."""

    def program():
        stranger = threading.Thread(target=lambda: (sleep(3.0), pause()))
        stranger.start()
        stranger.join(60)

    scheduler.run(program=program)

    assert scheduler.now_ns() == 0


# --- what goes wrong ----------------------------------------------------------------


def test_a_deadlock_says_who_waits_for_what_and_where(scheduler):
    first, second = scheduler.lock(), scheduler.lock()
    go = scheduler.mailbox()

    def one():
        with first:
            go.get()
            with second:
                pass

    def other():
        with second:
            go.put(None)
            with first:
                pass

    with pytest.raises(Deadlock) as caught:
        scheduler.run(one=one, other=other)

    lines = str(caught.value).splitlines()
    assert "waits for lock 1 (other)" in lines[1]
    assert "one (test_scheduler.py:" in lines[1]
    assert "waits for lock 0 (one)" in lines[2]


def test_a_thread_that_takes_a_lock_twice_waits_for_itself(scheduler):
    lock = scheduler.lock()

    def thread():
        with lock, lock:
            pass

    with pytest.raises(Deadlock, match=r"thread .* waits for lock 0 \(thread\)"):
        scheduler.run(thread=thread)


def test_a_daemon_thread_may_wait_for_ever(scheduler):
    box, got = scheduler.mailbox(), []

    scheduler.run(
        starter=lambda: scheduler.spawn(lambda: got.append(box.get()), "daemon")
    )

    assert [fiber.name for fiber in scheduler.fibers.alive.values()] == ["daemon"]
    scheduler.run(giver=lambda: box.put("later"))
    assert got == ["later"]
    assert not scheduler.fibers.alive


def test_a_run_without_end_is_stopped(scheduler):
    def spin():
        while True:
            pause()

    with pytest.raises(Livelock, match=f"no end after {MAX_SWITCHES} switches"):
        scheduler.run(spinner=spin)


def test_an_error_that_leaves_a_thread_is_raised_with_its_cause(scheduler):
    def fail():
        raise ValueError("of the thread")

    with pytest.raises(ThreadDied, match="thread failing died of ValueError") as caught:
        scheduler.run(failing=fail)

    assert isinstance(caught.value.__cause__, ValueError)


def test_threads_that_still_wait_are_unwound_at_the_end():
    unwound = []

    def wait(scheduler):
        try:
            scheduler.mailbox().get()
        finally:
            unwound.append(True)

    with Scheduler(Scripted({})) as scheduler, pytest.raises(Deadlock):
        scheduler.run(waiter=lambda: wait(scheduler))

    assert unwound == [True]


def test_a_thread_that_survives_everything_is_left_behind():
    def survive(scheduler):
        box = scheduler.mailbox()
        while True:
            with contextlib.suppress(BaseException):
                box.get()

    with Scheduler(Scripted({})) as scheduler, pytest.raises(Deadlock):
        scheduler.run(survivor=lambda: survive(scheduler))

    assert not scheduler.fibers.alive


def test_waiting_outside_of_a_run_is_refused(scheduler):
    box = scheduler.mailbox()

    with pytest.raises(RuntimeError, match="would wait for ever"):
        box.get()
    with pytest.raises(Empty):
        box.get(timeout=60.0)


def test_outside_of_a_run_everything_works_without_switching(scheduler):
    box, flag = scheduler.mailbox(), scheduler.flag()

    with scheduler.lock():
        box.put(1)
        flag.value = True
        pause()

    assert box.get() == 1
    assert flag.value
    assert scheduler.fibers.num_switches == 0


# --- interruptions ------------------------------------------------------------------


def test_tensors_use_an_engine_of_the_schedulers_inside_a_block(scheduler):
    outside = default_engine()
    x = gv.ones(1, requires_grad=True)
    engines, threads = [], []

    def backward():
        y = x * 2.0
        y.register_hook(lambda grad: threads.append(scheduler.thread()))
        y.sum().backward()

    with scheduler.default_engine() as engine:
        engines.append(default_engine())
        scheduler.run(one=backward, other=backward)

    assert engines == [engine]
    assert default_engine() is outside
    assert threads == [0, 1]
    assert x.grad.item() == 4.0


def test_the_engine_of_a_block_goes_when_the_block_fails(scheduler):
    outside = default_engine()

    with pytest.raises(ZeroDivisionError), scheduler.default_engine():
        raise ZeroDivisionError

    assert default_engine() is outside


def test_threads_have_the_numbers_of_their_start(scheduler):
    numbers = []

    scheduler.run(
        a=lambda: numbers.append(scheduler.thread()),
        b=lambda: numbers.append(scheduler.thread()),
    )

    assert (numbers, scheduler.thread()) == ([0, 1], -1)


def test_an_interruption_is_raised_where_a_thread_waits(scheduler):
    box, seen = scheduler.mailbox(), []

    def wait():
        try:
            box.get()
        except KeyboardInterrupt:
            seen.append("interrupted")
        seen.append(box.get())

    def strike():
        scheduler.interrupt("waiter", KeyboardInterrupt())
        box.put("item")

    scheduler.run(waiter=wait, signal=strike)

    assert seen == ["interrupted", "item"]


def test_an_interruption_strikes_at_every_point_under_some_schedule():
    def program(scheduler):
        reached = []

        def work():
            try:
                for step in range(3):
                    reached.append(step)
                    pause()
            except KeyboardInterrupt:
                reached.append("struck")

        scheduler.run(
            worker=work,
            signal=lambda: scheduler.interrupt("worker", KeyboardInterrupt()),
        )
        return tuple(reached)

    struck = {result for result in outcomes(program, bound=1) if "struck" in result}

    assert struck == {(*range(n), "struck") for n in (1, 2, 3)}


def test_an_interruption_of_a_thread_that_has_ended_is_nothing(scheduler):
    scheduler.run(
        worker=pause, signal=lambda: scheduler.interrupt("worker", SystemExit())
    )

    assert not scheduler.fibers.alive


def test_an_interrupted_thread_gives_its_lock_back():
    def program(scheduler):
        lock, blocks = scheduler.lock(), []

        def work():
            try:
                with lock:
                    blocks.append("entered")
                    pause()
                    blocks.append("left")
            except KeyboardInterrupt:
                blocks.append("struck")

        scheduler.run(
            worker=work,
            signal=lambda: scheduler.interrupt("worker", KeyboardInterrupt()),
        )
        assert lock.owner is None
        return tuple(blocks)

    assert {
        ("struck",),
        ("entered", "struck"),
        ("entered", "left", "struck"),
        ("entered", "left"),
    } == outcomes(program, bound=1)
