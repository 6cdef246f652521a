import itertools
import random

import pytest

from gradviz.render.charts.bars import LEAST, MIN_BAR, Scale, bars, row_of, ticks

#: One pixel a nanosecond, from the left edge.
SCALE = Scale(left=0, per_ns=1, begin_ns=0, end_ns=1_000)


def drawn(spans, scale=SCALE, cell=MIN_BAR):
    return bars(row_of(spans, scale), scale, cell)


def shown(spans):
    return [(bar.x, bar.wide, len(bar.spans)) for bar in drawn(spans)]


def test_a_span_that_can_be_seen_is_a_bar_of_its_own(make_span):
    assert shown([make_span(0, 0, 10), make_span(1, 10, 30)]) == [
        (0, 10, 1),
        (10, 20, 1),
    ]


def test_narrow_spans_that_start_in_one_cell_are_one_bar(make_span):
    spans = [make_span(index, index, index + 1) for index in range(6)]

    assert shown(spans) == [(0, 2, 2), (2, 2, 2), (4, 2, 2)]


def test_times_of_more_than_64_bits_are_drawn_where_they_would_be(make_span):
    scale = Scale(left=0, per_ns=1 / 2**60, begin_ns=0, end_ns=2**65)

    (bar,) = drawn([make_span(0, 2**64, 2**65)], scale)

    assert (bar.x, bar.wide) == (16, 16)


def test_narrow_spans_that_are_apart_stay_apart(make_span):
    assert shown([make_span(0, 0, 1), make_span(1, 50, 51)]) == [
        (0, LEAST, 1),
        (50, LEAST, 1),
    ]


def test_a_wide_span_is_alone_whatever_surrounds_it(make_span):
    spans = [make_span(0, 0, 0), make_span(1, 0, 3), make_span(2, 3, 3)]

    assert shown(spans) == [(0, 1, 1), (1, 2, 1), (3, 1, 1)]


def test_sleep_and_work_in_one_cell_are_one_bar(make_span):
    spans = [make_span(0, 0, 1), make_span(1, 1, 2, kind="wait")]

    assert shown(spans) == [(0, 2, 2)]


def test_only_what_is_within_the_time_shown_is_drawn_and_cut_to_it(make_span):
    scale = Scale(left=10, per_ns=2, begin_ns=100, end_ns=200)
    spans = [make_span(n, 60 * n, 60 * n + 60) for n in range(5)]

    found = drawn(spans, scale)

    assert [(bar.x, bar.wide, bar.spans[0].index) for bar in found] == [
        (10, 40, 1),
        (50, 120, 2),
        (170, 40, 3),
    ]
    assert scale.right == 210


@pytest.mark.parametrize("seed", range(20))
def test_every_span_is_in_one_bar_where_it_is_and_no_bars_overlap(make_span, seed):
    rng = random.Random(seed)
    spans, now = [], 0
    for index in range(400):
        begin = now + rng.choice((0, 0, 1, 3, 40))
        now = begin + rng.choice((0, 1, 2, 5, 100, 3_000))
        spans.append(make_span(index, begin, now))
    scale = Scale(left=100, per_ns=800 / now, begin_ns=0, end_ns=now)

    found = drawn(spans, scale, cell=2.0 ** rng.randint(1, 4))

    assert [one for bar in found for one in bar.spans] == spans
    for bar in found:
        assert abs(bar.x - scale.x(bar.spans[0].start_ns)) <= MIN_BAR
        assert bar.x + bar.wide >= scale.x(bar.spans[-1].end_ns) - MIN_BAR
    assert found[-1].x + found[-1].wide <= scale.right
    for bar, after in itertools.pairwise(found):
        assert bar.x + bar.wide <= after.x + 1e-9


@pytest.mark.parametrize(
    ("end_ns", "expected"),
    [
        (0, [0]),
        (9, list(range(10))),
        (45, [0, 5, 10, 15, 20, 25, 30, 35, 40, 45]),
        (1_000, [0, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1_000]),
    ],
)
def test_ticks_are_at_round_times(end_ns, expected):
    scale = Scale(left=0, per_ns=800 / max(end_ns, 1), begin_ns=0, end_ns=end_ns)

    assert list(ticks(scale)) == expected


def test_ticks_of_a_part_are_those_of_the_whole(make_span):
    scale = Scale(left=0, per_ns=8, begin_ns=1_234, end_ns=1_334)

    assert list(ticks(scale)) == list(range(1_240, 1_331, 10))


@pytest.mark.parametrize("wide", [100, 300, 800, 4_000])
@pytest.mark.parametrize("end_ns", [10**exponent * 7 for exponent in range(12)])
def test_marks_of_the_axis_have_room_for_their_times(end_ns, wide):
    scale = Scale(left=0, per_ns=wide / end_ns, begin_ns=0, end_ns=end_ns)

    places = [scale.x(ns) for ns in ticks(scale)]

    assert all(b - a >= 60 for a, b in itertools.pairwise(places))
