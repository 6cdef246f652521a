"""The seam in production: Python's own threads, locks and mailboxes."""

import os
import threading

import pytest

from gradviz.engine import AccumulateGrad
from gradviz.engine.graph.sync import THREADS, Empty, stacks
from tests.engine.nodes import Mailbox, in_thread, start_thread
from tests.faults.programs import run_program


def test_a_mailbox_hands_over_in_order():
    mailbox = THREADS.mailbox()
    for item in "ab":
        mailbox.put(item)

    assert (mailbox.qsize(), mailbox.empty()) == (2, False)
    assert [mailbox.get(), mailbox.get()] == ["a", "b"]
    with pytest.raises(Empty):
        mailbox.get(timeout=0.0)


def test_a_sleep_in_a_mailbox_notices_signals_that_another_thread_was_given():
    """Five, for one or two may strike before the sleep."""
    ended = run_program(
        """
        from gradviz.engine.graph.sync import THREADS
        noticed = []
        def handle(*_):
            noticed.append(None)
            if len(noticed) == 5:
                raise KeyboardInterrupt
        signal.signal(signal.SIGINT, handle)
        is_over = threading.Event()
        def strike():
            while not is_over.is_set():
                signal.pthread_kill(threading.get_ident(), signal.SIGINT)
                os.sched_yield()
        mailbox = THREADS.mailbox()
        threading.Thread(target=strike, daemon=True).start()
        try:
            mailbox.get(timeout=20)
        except KeyboardInterrupt:
            print("noticed")
        is_over.set()
        """
    )

    assert (ended.output, ended.errors) == ("noticed", "")


def test_a_local_value_is_made_once_for_each_thread():
    local = THREADS.local(list)

    mine = local.get()

    assert local.get() is mine
    assert in_thread(local.get) is not mine


def test_a_flag_begins_unset():
    flag = THREADS.flag()
    assert flag.value is False

    flag.value = True

    assert flag.value is True


def test_a_lock_excludes():
    lock = THREADS.lock()

    with lock:
        assert lock.locked()  # type: ignore[attr-defined]
    assert not lock.locked()  # type: ignore[attr-defined]


def test_a_lock_that_finds_no_memory_is_a_memory_error(monkeypatch):
    """CPython calls it a RuntimeError."""

    def none_left():
        raise RuntimeError("can't allocate lock")

    monkeypatch.setattr(threading, "Lock", none_left)
    monkeypatch.setattr("gradviz.engine.graph.sync.SafeLock", none_left)
    with pytest.raises(MemoryError, match="can't allocate lock"):
        THREADS.lock()
    with pytest.raises(MemoryError, match="can't allocate lock"):
        THREADS.spawn(none_left, "a thread, which has locks of its own")
    monkeypatch.setattr("gradviz.engine.graph.basic_nodes.LeafLock", none_left)
    with pytest.raises(MemoryError, match="can't allocate lock"):
        AccumulateGrad(object())


def test_a_thread_that_cannot_start_is_what_it_was(monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        THREADS.spawn(print, "a thread")


def test_a_spawned_thread_is_a_daemon_with_its_name():
    found: list[tuple[str, bool]] = []
    ran = Mailbox()

    def run() -> None:
        thread = threading.current_thread()
        found.append((thread.name, thread.daemon))
        ran.send()

    THREADS.spawn(run, "a name")
    ran.wait()

    assert found == [("a name", True)]


def test_the_clock_never_goes_back():
    first = THREADS.now_ns()

    assert THREADS.now_ns() >= first


def test_the_process_is_this_one():
    assert THREADS.process_id() == os.getpid()


def test_stacks_tell_where_each_thread_is():
    is_there, may_end = Mailbox(), Mailbox()

    def elsewhere() -> int:
        is_there.send()
        may_end.wait()
        return threading.get_ident()

    thread = start_thread(elsewhere)
    is_there.wait()
    found = stacks()
    may_end.send()

    mine, others = found[threading.get_ident()], found[thread.result()]
    assert "in test_stacks_tell_where_each_thread_is" in mine[-2]
    assert any("in elsewhere" in frame for frame in others)
    assert "in run" in others[0] or "in _bootstrap" in others[0]
