import pytest

from gradviz.render.bars import MIN_BAR, Scale, bars, fitting, ticks, tooltip

#: One pixel a nanosecond, from the left edge.
SCALE = Scale(left=0, per_ns=1)


def shown(spans):
    return [(bar.x, bar.wide, len(bar.spans)) for bar in bars(spans, SCALE)]


def test_a_span_that_can_be_seen_is_a_bar_of_its_own(make_span):
    assert shown([make_span(0, 0, 10), make_span(1, 10, 30)]) == [
        (0, 10, 1),
        (10, 20, 1),
    ]


def test_neighbours_too_narrow_to_be_seen_are_one_bar(make_span):
    spans = [make_span(index, index, index + 1) for index in range(20)]

    assert shown(spans) == [(0, 20, 20)]


def test_narrow_spans_that_are_apart_stay_apart(make_span):
    assert shown([make_span(0, 0, 1), make_span(1, 50, 51)]) == [
        (0, MIN_BAR, 1),
        (50, MIN_BAR, 1),
    ]


def test_a_failed_span_is_never_hidden_among_others(make_span):
    spans = [
        make_span(0, 0, 1),
        make_span(1, 1, 2, status="failed"),
        make_span(2, 2, 3),
    ]

    assert [num for _, _, num in shown(spans)] == [1, 1, 1]


def test_sleep_and_work_are_never_one_bar(make_span):
    spans = [make_span(0, 0, 1), make_span(1, 1, 2, kind="wait")]

    assert [num for _, _, num in shown(spans)] == [1, 1]


def test_a_bar_says_as_much_as_it_has_room_for(make_span):
    span = make_span(7, 0, 1)

    assert [fitting(span, room) for room in (100, 15, 5)] == ["7 Mul", "7", ""]


@pytest.mark.parametrize(
    ("end_ns", "expected"),
    [
        (0, [0]),
        (9, list(range(10))),
        (45, [0, 5, 10, 15, 20, 25, 30, 35, 40, 45]),
        (1_000, [0, 200, 400, 600, 800, 1_000]),
    ],
)
def test_ticks_are_at_round_times(end_ns, expected):
    assert list(ticks(end_ns)) == expected


@pytest.mark.parametrize("end_ns", [10**exponent * 7 for exponent in range(12)])
def test_there_are_never_many_ticks(end_ns):
    assert 4 <= len(ticks(end_ns)) <= 10


def test_a_call_of_a_module_says_its_path_or_the_end_of_it(make_span):
    call = make_span(-1, 0, 1_000, kind="forward", name="Net.layers.0.norm", device="")

    assert [fitting(call, room) for room in (300, 60, 5)] == [
        "Net.layers.0.norm",
        "norm",
        "",
    ]
    assert tooltip([call]) == "forward: Net.layers.0.norm\ntook 1 µs, from 0 ns"
    assert tooltip([call, call]) == "2 calls of forward, 2 µs together"


def test_a_call_that_raised_says_so(make_span):
    call = make_span(-1, 0, 9, kind="optimizer", name="SGD", status="failed")

    assert tooltip([call]) == "optimizer: SGD\ntook 9 ns, from 0 ns, failed"


def test_a_bar_tells_processor_time_and_the_parameter_of_a_leaf(make_span):
    short = make_span(0, 0, 90_000, thread_time_ns=90_000)
    leaf = make_span(
        1, 0, 9_000_000, thread_time_ns=1_000_000, parameters=("Net.weight",)
    )

    assert "running" not in tooltip([short])
    assert "its thread was running for 1 ms" in tooltip([leaf])
    assert "adds up the gradient of Net.weight" in tooltip([leaf])
