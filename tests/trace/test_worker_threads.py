from gradviz.trace.reader import parse_trace
from gradviz.trace.recorder import Recorder
from gradviz.trace.sink import MemorySink
from tests.trace.test_merging import merge, of


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
