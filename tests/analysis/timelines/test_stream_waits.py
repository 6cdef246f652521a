import msgspec
import pytest

from gradviz.analysis.tables.kernels import kernels
from gradviz.analysis.timelines.idle_spans import StreamWait, stream_waits

MAIN, SIDE, OTHER = "sim:0/0", "sim:0/1", "sim:1/0"


def pairs(story):
    """Return pairs of waiting and awaited kernels, by number."""
    trace = story.trace()
    found = stream_waits(trace, kernels(trace))
    return [(one.kernel, one.awaited_kernel) for one in found]


def ran(story, number, stream):
    story.kernel(number, stream, at=10 * number, ran=(100 * number, 100 * number + 50))


def test_the_next_kernel_waits_for_the_last_one_before_the_event(story):
    ran(story, 1, MAIN)
    ran(story, 2, MAIN)
    story.record(7, MAIN, node=21)
    ran(story, 3, MAIN)
    ran(story, 4, SIDE)
    story.wait(7, SIDE, node=20, producer=21)
    ran(story, 5, SIDE)
    ran(story, 6, SIDE)

    trace = story.trace()
    assert stream_waits(trace, kernels(trace)) == [
        StreamWait(
            stream=SIDE,
            kernel=5,
            node=20,
            begin_ns=1_500,
            awaited_stream=MAIN,
            awaited_kernel=2,
            producer=21,
            ready_ns=1_250,
        )
    ]


def test_a_kernel_may_wait_for_several_streams_and_for_each_once(story):
    ran(story, 1, MAIN)
    ran(story, 2, OTHER)
    for event, stream in enumerate((MAIN, MAIN, OTHER)):
        story.record(event, stream)
        story.wait(event, SIDE)
    ran(story, 3, SIDE)

    assert pairs(story) == [(3, 1), (3, 2)]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_of_several_kernels_of_one_stream_the_last_is_waited_for(story, order):
    for event in (0, 1):
        ran(story, event + 1, MAIN)
        story.record(event, MAIN)
    for event in order:
        story.wait(event, SIDE, node=event)
    ran(story, 3, SIDE)

    trace = story.trace()
    (wait,) = stream_waits(trace, kernels(trace))
    assert (wait.awaited_kernel, wait.node) == (2, 1)


def test_several_streams_may_wait_for_one_event(story):
    ran(story, 1, MAIN)
    story.record(0, MAIN)
    story.wait(0, SIDE)
    story.wait(0, OTHER)
    ran(story, 2, SIDE)
    ran(story, 3, OTHER)

    assert pairs(story) == [(2, 1), (3, 1)]


def test_an_event_stands_for_what_its_stream_waits_for_as_well(story):
    ran(story, 1, MAIN)
    story.record(0, MAIN)
    story.wait(0, SIDE)  # and has nothing to do itself
    story.record(1, SIDE)
    story.wait(1, OTHER)
    ran(story, 2, OTHER)

    assert pairs(story) == [(2, 1)]


def test_a_wait_without_visible_work_on_two_streams_is_left_out(story):
    story.record(0, MAIN)  # no work before it
    story.wait(0, SIDE)
    ran(story, 1, SIDE)
    story.record(1, SIDE)
    story.wait(1, SIDE)  # a stream is in order by itself
    story.wait(99, SIDE)  # recorded before the trace began
    ran(story, 2, SIDE)
    story.record(2, SIDE)
    story.wait(2, MAIN)  # no work after it

    assert pairs(story) == []


def test_waits_of_kernels_that_nobody_asked_for_are_left_out(story):
    ran(story, 1, MAIN)
    story.record(0, MAIN)
    story.wait(0, SIDE)
    ran(story, 2, SIDE)

    trace = story.trace()
    first, second = kernels(trace)
    assert stream_waits(trace, [first]) == stream_waits(trace, [second]) == []
    assert len(stream_waits(trace, [first, second])) == 1


def test_a_wait_can_be_written_as_json(story):
    ran(story, 1, MAIN)
    story.record(0, MAIN)
    story.wait(0, SIDE)
    ran(story, 2, SIDE)

    trace = story.trace()
    (wait,) = stream_waits(trace, kernels(trace))
    assert msgspec.to_builtins(wait)["awaited_stream"] == MAIN
