"""Collectives of ranks: what they say of clocks, and what is said of them."""

import pytest

from gradviz.trace.format.clock import ClockPair
from gradviz.trace.merging.collective_order import uneven_in_words
from gradviz.trace.merging.placement import place
from tests.analysis.conftest import Story
from tests.analysis.ranks import rank_trace, ranks
from tests.trace.merging.test_merged_file import of

SPANS = ((60, 70), (80, 90), (100, 110))


def ahead(spans, by_ns):
    return tuple(tuple(t_ns + by_ns for t_ns in span) for span in spans)


@pytest.mark.parametrize("by_ns", [0, 1_000_000, 3_600_000_000_000])
def test_collectives_tell_how_far_the_clocks_of_two_machines_are_apart(by_ns):
    first = of(rank_trace(0, spans=SPANS), boot_id="a", host="a")
    other = rank_trace(1, begin=by_ns, spans=ahead(SPANS, by_ns), end=by_ns + 200)
    clocks = [ClockPair(monotonic_ns=0, wall_ns=9_999)]
    other = of(other, clocks=clocks, boot_id="b", host="b", pid=7, recording=7)

    placed = {one.trace.header.host: one for one in place([first, other])}
    begins = [
        one.clock.moved(one.trace.columns["collective_began"]["t_ns"])
        for one in placed.values()
    ]

    assert [one.doubt for one in placed.values()] == ["", ""]
    within_ns = max(one.clock.uncertainty_ns for one in placed.values())
    assert 0 < within_ns < 1_000
    assert abs(begins[0] - begins[1]).max() <= within_ns


def test_collectives_that_contradict_each_other_say_nothing_of_clocks():
    first = of(rank_trace(0, spans=SPANS), boot_id="a", host="a")
    moved = (SPANS[0], *ahead(SPANS[1:], 10_000_000))
    other = rank_trace(1, spans=moved, end=20_000_000)
    other = of(other, boot_id="b", host="b", pid=7, recording=7)

    placed = place([first, other])

    assert any(one.doubt for one in placed)


def test_ranks_with_different_numbers_of_collectives_are_told_and_merged():
    whole = ranks(rank_trace(0, spans=SPANS), rank_trace(1, spans=SPANS[:1]))

    assert whole.columns["collective_began"].num_rows == 4
    (told,) = whole.losses.in_words()
    assert told.startswith("ranks ran different numbers of gloo:all_reduce of process")
    assert told.endswith(" group 0: pid 10 3, pid 11 1")


def test_a_rank_whose_trace_is_missing_is_told():
    whole = ranks(*(rank_trace(rank, world_size=3) for rank in range(2)))

    assert whole.losses.in_words() == ["traces of 2 ranks of 3 are here"]


def test_nothing_is_said_of_ranks_that_ran_the_same():
    traces = [rank_trace(rank) for rank in range(2)]

    assert not ranks(*traces).losses.in_words()
    launcher = Story().trace()  # has no collectives, and is no rank
    named = [("pid 1", launcher), ("pid 2", traces[0]), ("pid 3", traces[1])]
    assert uneven_in_words(named) == []


def test_groups_of_some_ranks_need_not_be_on_all():
    traces = [
        rank_trace(rank, group=f"of {rank // 2}", world_size=2) for rank in range(4)
    ]

    assert uneven_in_words([(f"rank {i}", one) for i, one in enumerate(traces)]) == []
