"""The same collective on all ranks, side by side."""

import pytest

from gradviz.analysis.tables.collectives import collectives
from tests.analysis.ranks import rank_trace, ranks


def numbers_of(trace):
    """Return of each collective the ranks that took part, and its bucket."""
    return [
        ([part.rank for part in one.parts], one.bucket) for one in collectives(trace)
    ]


def test_a_trace_without_collectives_has_none(story):
    story.recorder.mark("here")

    assert collectives(story.trace()) == ()


def test_the_nth_of_each_rank_is_one_collective():
    spans = ((60, 100), (70, 120))
    trace = ranks(rank_trace(0, spans=spans), rank_trace(1, spans=spans))

    assert numbers_of(trace) == [([0, 1], 0), ([0, 1], 1)]
    assert [(one.number, one.world_size) for one in collectives(trace)] == [
        (0, 2),
        (1, 2),
    ]


def test_one_rank_alone_is_told_as_it_is():
    (one,) = collectives(rank_trace(3, world_size=4))

    assert [part.rank for part in one.parts] == [3]
    assert one.world_size == 4
    assert (one.group, one.model, one.size_bytes) == ("0", "Net", 8)


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_a_collective_that_one_rank_lacks_is_that_of_the_other(missing):
    spans = ((60, 70), (80, 90), (100, 110))
    others = spans[:missing] + spans[missing + 1 :]
    trace = ranks(rank_trace(0, spans=spans), rank_trace(1, spans=others))

    assert [[part.rank for part in one.parts] for one in collectives(trace)] == [
        [0] if number == missing else [0, 1] for number in range(3)
    ]


def test_process_groups_are_told_apart():
    trace = ranks(rank_trace(0, group="0"), rank_trace(0, group="1"))

    assert [one.group for one in collectives(trace)] == ["0", "1"]


def test_a_collective_that_never_ended_has_no_end():
    (one,) = collectives(rank_trace(0, spans=((60,),)))

    assert one.parts[0].ended_ns is None
    assert one.parts[0].ended_seq == -1


def test_gradients_fill_the_bucket_of_the_next_collective():
    (one,) = collectives(rank_trace(0))
    (gradient,) = one.parts[0].gradients

    assert (gradient.node, gradient.size_bytes) == (1, 8)
    assert gradient.ready_ns < one.parts[0].began_ns


def test_a_world_size_that_ranks_contradict_each_other_on_is_unknown():
    trace = ranks(rank_trace(0, world_size=2), rank_trace(1, world_size=3))
    (one,) = collectives(trace)

    assert one.world_size is None
