import pytest

from gradviz.trace.format.model import ThreadDefinition
from gradviz.trace.reading.reader import parse_trace
from gradviz.trace.reading.worker_threads import by_owner, name_at, owner_of
from gradviz.trace.recording.recorder import Recorder
from gradviz.trace.recording.sink import MemorySink
from tests.trace.merging.test_merged_file import merge, of


def began(*workers):
    """A trace in which the thread that runs this began as these workers."""
    sink = MemorySink()
    recorder = Recorder(sink, flush_every_s=None)
    for worker in workers:
        recorder.worker_began(worker, 3, f"w{worker}")
    recorder.close()
    return parse_trace(sink.contents())


def names(trace):
    return {one.name for one in trace.threads.values()}


def test_the_thread_that_began_a_worker_is_called_after_it():
    assert names(began(2)) == {"worker 2 / MainThread"}


def test_a_thread_that_began_several_workers_is_called_after_none():
    assert names(began(0, 1)) == {"MainThread"}


def test_merged_traces_of_workers_call_everything_after_them_once():
    whole = merge(*(of(began(rank), rank=rank) for rank in (0, 1)))

    assert names(whole) == {"worker 0 / MainThread", "worker 1 / MainThread"}


@pytest.mark.parametrize(
    ("name", "owner"),
    [
        ("worker 1 / call 2", "worker 1"),
        ("pid 47 / worker 0 / main", "pid 47 / worker 0"),
        ("MainThread", ""),
    ],
)
def test_a_name_says_whose_a_thread_is(name, owner):
    assert owner_of(name) == owner


def test_threads_of_one_worker_are_together_and_those_of_none_last():
    names = ["worker 10 / call", "gv_autograd_0", "worker 2 / b", "worker 10 / a"]
    trace = began(0)
    trace.threads = {
        number: ThreadDefinition(number, name) for number, name in enumerate(names)
    }

    assert by_owner(trace, [4, 3, 2, 1, 0]) == [2, 0, 3, 1, 4]


def test_beside_its_owner_a_queue_has_its_own_name():
    assert name_at("worker 1", "worker 1 / caller 3") == "caller 3"
    assert name_at("worker 1", "worker 12 / caller 3") == "worker 12 / caller 3"
    assert name_at("", "caller 3") == "caller 3"
