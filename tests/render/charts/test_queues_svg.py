import xml.etree.ElementTree as ET

import pytest

from gradviz.analysis.queues.queues_over_time import QueuesOverTime, QueueStays, Stay
from gradviz.render.charts.queues_svg import HANDED_OVER, MAX_SLOTS, OWN, render_queues

SVG = "{http://www.w3.org/2000/svg}"


def stay(
    node: int, slot: int, pushed_ns: int, popped_ns: int | None, **changes
) -> Stay:
    fields = {
        "task": 0,
        "node": node,
        "name": "MulBackward0",
        "index": node,
        "slot": slot,
        "pushed_ns": pushed_ns,
        "popped_ns": popped_ns,
        "pushed_by": 0,
        "popped_by": 0,
    }
    return Stay(**(fields | changes))


def queues(*stays: Stay, sleeps=(), **changes: object) -> QueuesOverTime:
    one = QueueStays(
        queue=1,
        name=changes.pop("name", "device 0"),
        stays=stays,
        num_stays=changes.pop("num_stays", len(stays)),
        num_handed_over=sum(one.is_handed_over for one in stays),
        longest=max((one.slot for one in stays), default=-1) + 1,
        lengths=((0, 0), (100, 1), (400, 0)),
        sleeps=sleeps,
    )
    fields = {
        "tasks": (0,),
        "duration_ns": 1_000,
        "from_ns": 0,
        "until_ns": 1_000,
        "queues": (one,),
        "threads": {0: "Main", 1: "gv_autograd_0"},
        "omitted": 0,
        "is_complete": True,
    }
    return QueuesOverTime(**(fields | changes))


def test_a_stay_is_told_with_the_number_of_its_node():
    svg = render_queues([queues(stay(108, 0, 100, 400, index=5))])

    (told,) = [one for one in texts(svg) if "waited there for" in one]
    assert told.startswith("#5 MulBackward0 (id 108) of pass 0\n")


def texts(svg: bytes) -> list[str]:
    return [one for one in ET.fromstring(svg).itertext() if one.strip()]


def bars(svg: bytes, fill: str) -> list[tuple[float, float]]:
    """Place and width of what has a color, the legend's swatch first."""
    return [
        (float(one.get("x")), float(one.get("width")))
        for one in ET.fromstring(svg).iter(f"{SVG}rect")
        if one.get("fill") == fill
    ]


def test_a_task_is_a_bar_from_its_push_to_its_pop() -> None:
    svg = render_queues([queues(stay(3, 0, 100, 400))], "train.py")

    (swatch, bar) = bars(svg, OWN)
    per_ns = (940 - 152) / 1_000
    assert bar[0] == pytest.approx(152 + 100 * per_ns, abs=0.1)
    assert bar[1] == pytest.approx(300 * per_ns, abs=0.1)
    assert swatch[1] == 13
    shown = texts(svg)
    assert "Ready queues of backward pass 0 · 1 µs · train.py" in shown
    assert "Mul" in shown
    assert any("waited there for 300 ns" in one for one in shown)


def test_a_hand_over_is_told_with_both_threads() -> None:
    svg = render_queues([queues(stay(3, 0, 100, 400, popped_by=1))])

    assert len(bars(svg, HANDED_OVER)) == 2
    shown = texts(svg)
    assert "1 task · 1 handed over between threads" in shown
    assert any("from Main to gv_autograd_0" in one for one in shown)


def test_a_task_that_no_thread_took_is_labeled_as_never_taken() -> None:
    shown = texts(render_queues([queues(stay(3, 0, 100, None, popped_by=-1))]))

    assert "never taken" in shown


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"took_ns": 400}, "400 ns (shown: 1 µs)"),
        ({"took_ns": 1_000}, "1 µs"),
        ({"took_ns": None}, "1 µs"),
        ({"took_ns": 400, "from_ns": 100, "until_ns": 300}, "400 ns (shown: 200 ns)"),
    ],
)
def test_a_pass_is_as_long_as_from_its_own_begin_to_its_own_end(changes, told) -> None:
    svg = render_queues([queues(**changes)], "train.py")

    assert f"Ready queues of backward pass 0 · {told} · train.py" in texts(svg)


def test_sleep_is_drawn_and_added_up() -> None:
    svg = render_queues([queues(stay(1, 0, 1, 2), sleeps=((0, 100), (300, 500)))])

    assert "asleep 300 ns" in texts(svg)
    assert "thread asleep on it" in texts(svg)


def test_many_short_tasks_are_drawn_together() -> None:
    stays = [stay(nr, 0, nr, nr + 1) for nr in range(1_000)]

    svg = render_queues([queues(*stays)])

    assert 100 < len(bars(svg, OWN)) < 400
    assert any(one.endswith("tasks, the first MulBackward0") for one in texts(svg))


def test_of_a_long_queue_the_first_places_are_drawn() -> None:
    stays = [stay(nr, nr, 10, 900) for nr in range(MAX_SLOTS + 5)]

    svg = render_queues([queues(*stays)])

    assert len(bars(svg, OWN)) == 1 + MAX_SLOTS
    assert "and 5 places more" in texts(svg)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"is_complete": False}, "Events are missing from the trace"),
        ({"omitted": 3}, "3 queues more are left out"),
        ({"num_stays": 9}, "8 tasks are counted in the lengths only"),
        ({"from_ns": 200, "until_ns": 600}, "Shown: 200 ns to 600 ns after the start"),
    ],
)
def test_a_queue_picture_reports_the_parts_it_leaves_out(changes, told) -> None:
    svg = render_queues([queues(stay(3, 0, 100, 400), **changes)])

    assert any(told in one for one in texts(svg))


def test_a_pass_without_queues_is_said() -> None:
    svg = render_queues([queues(queues=()), queues(stay(1, 0, 0, 9), tasks=(1,))])

    assert "no tasks" in texts(svg)
    assert {"Backward pass 0, 1 µs", "Backward pass 1, 1 µs"} <= {*texts(svg)}


def test_names_of_a_trace_are_only_text(hostile) -> None:
    threads = {0: hostile, 1: hostile}
    bad = queues(stay(1, 0, 0, 900, name=hostile, popped_by=1), threads=threads)
    bad = ET.fromstring(render_queues([bad], hostile))

    benign = queues(stay(1, 0, 0, 900, name="xyz", popped_by=1))
    benign = ET.fromstring(render_queues([benign], "x.py"))
    assert [one.tag for one in bad.iter()] == [one.tag for one in benign.iter()]
