import itertools
import random

import numpy as np
import pytest

from gradviz.export.timeline.activity import activity
from gradviz.export.timeline.slices import (
    SLEEP,
    Slices,
    apart,
    begins_and_ends,
    nesting,
    thread_slices,
)
from tests.analysis.conftest import START_NS


def some(seed):
    """Slices at random times, in the order in which they begin."""
    chance = random.Random(seed)
    pairs = [sorted(chance.choices(range(40), k=2)) for _ in range(30)]
    return slices_of(*pairs)


def slices_of(*pairs):
    """Slices from the first to the second number of each pair."""
    begin, end = np.array(pairs, np.int64).T
    kind = np.full(len(pairs), 3, np.int8)
    return Slices(begin, end, kind, np.arange(len(pairs))).in_order()


@pytest.mark.parametrize("seed", range(5))
def test_slices_of_a_track_nest_whatever_they_are(seed):
    slices = some(seed)
    tracks = nesting(slices)

    assert sorted(one for track in tracks for one in track) == sorted(slices)
    for track in tracks:
        still_open, last = [], 0
        for t_ns, one, begins in begins_and_ends(track):
            assert last <= t_ns
            last = t_ns
            if begins:
                still_open.append(one)
            else:
                assert still_open.pop() == one
        assert still_open == []


@pytest.mark.parametrize("seed", range(5))
def test_slices_apart_never_overlap_and_take_no_more_tracks_than_needed(seed):
    slices = some(seed)
    tracks = apart(slices)

    assert sorted(one for track in tracks for one in track) == sorted(slices)
    for track in tracks:
        assert all(a.end_ns <= b.begin_ns for a, b in itertools.pairwise(track))
    lasting = [(one.begin_ns, one.end_ns) for one in slices]
    at_once = max(sum(begin <= t < end for begin, end in lasting) for t in range(40))
    assert len(tracks) <= at_once + 1


def test_nested_slices_stay_on_one_track():
    assert len(nesting(slices_of((0, 9), (2, 5), (5, 9)))) == 1
    assert len(nesting(slices_of((0, 9), (5, 12)))) == 2


def test_a_sleep_from_before_the_recording_begins_with_it(story):
    story.begin(0, [story.node(1)], at=0)
    story.waited(3_600_000_000_000, until=10)
    story.waited(3, until=20)
    trace = story.trace()
    what = activity(trace)

    ((_, slices),) = thread_slices(trace, what)

    assert what.origin_ns == next(trace.events()).t_ns
    assert [(one.begin_ns, one.end_ns) for one in slices.of(SLEEP)] == [
        (what.origin_ns, START_NS + 10),
        (START_NS + 17, START_NS + 20),
    ]
