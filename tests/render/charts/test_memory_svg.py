import re
import xml.etree.ElementTree as ET

import pytest

from gradviz.analysis.memory.memory_use import (
    HeldBytes,
    HeldMemory,
    Holder,
    MemoryMoment,
)
from gradviz.render.charts.memory_svg import COLORS, PLOT_HEIGHT, render_memory

SVG = "{http://www.w3.org/2000/svg}"
KIB = 1 << 10


def use(**sizes: int | None) -> HeldBytes:
    names = ("total", "buffers", "saved", "gradients", "results", "unclaimed")
    return HeldBytes(**(dict.fromkeys(names, 0) | sizes))


def holder(name: str, **changes: object) -> Holder:
    fields = {
        "purpose": "saved",
        "size_bytes": 4 * KIB,
        "node": 7,
        "task": 0,
        "name": name,
        "module": "Net.first",
        "location": "/home/u/train.py:12",
        "since_ns": -5,
        "until_ns": 700,
    }
    return Holder(**(fields | changes))


def memory(**changes: object) -> HeldMemory:
    """Saved tensors that go as .grad comes, over 1,000 ns."""
    holders = tuple(holder(f"Node{nr}") for nr in range(6))
    fields = {
        "tasks": (0,),
        "origin_ns": 50,
        "duration_ns": 1_000,
        "from_ns": 0,
        "until_ns": 1_000,
        "begin": use(total=8 * KIB, saved=8 * KIB),
        "peak": MemoryMoment(
            after_ns=250,
            use=use(total=10 * KIB, saved=8 * KIB, buffers=2 * KIB),
            holders=holders,
            num_holders=9,
        ),
        "end": use(total=4 * KIB, gradients=4 * KIB),
        "curves": {},
        # buffers, saved, gradients, results, unclaimed
        "stack": (
            (0, 0, 8 * KIB, 0, 0, 0),
            (250, 2 * KIB, 8 * KIB, 0, 0, 0),
            (500, 0, 0, 4 * KIB, 0, 0),
        ),
        "savings": (),
        "devices": (),
        "num_unknown": 0,
        "is_complete": True,
    }
    return HeldMemory(**(fields | changes))


def texts(svg: bytes) -> list[str]:
    return [one for one in ET.fromstring(svg).itertext() if one.strip()]


def outline(svg: bytes, color: str) -> list[tuple[float, float]]:
    """The corners of the layer of a color."""
    (path,) = (
        one.get("d")
        for one in ET.fromstring(svg).iter(f"{SVG}path")
        if one.get("fill") == color
    )
    x, y, found = 0.0, 0.0, []
    for letter, numbers in re.findall(r"([MHV])([-0-9. ]+)", path):
        values = [float(one) for one in numbers.split()]
        x, y = {"M": values, "H": [*values, y], "V": [x, *values]}[letter][:2]
        found.append((x, y))
    return found


def test_layers_lie_on_each_other_as_high_as_the_bytes() -> None:
    svg = render_memory([memory()])

    saved, buffers = outline(svg, COLORS["saved"]), outline(svg, COLORS["buffers"])
    left, right = 152, 940  # margin and gutter of 960 pixels
    bottom = max(y for _, y in saved)
    per_kib = PLOT_HEIGHT / (10 * 1.15)
    heights = {x: round((bottom - y) / per_kib, 1) for x, y in saved}
    assert {x for x, _ in saved} == {left, left + 197, left + 394, right}
    assert min(y for _, y in saved) == pytest.approx(bottom - 8 * per_kib, abs=0.1)
    assert min(y for _, y in buffers) == pytest.approx(bottom - 10 * per_kib, abs=0.1)
    assert heights[right] == 4  # of .grad, below it


def test_the_peak_is_marked_with_who_held_it() -> None:
    shown = texts(render_memory([memory()], "train.py"))

    assert "Memory of backward pass 0 · 1 µs · train.py" in shown
    assert "peak 10 KiB after 250 ns" in shown
    assert "4 KiB saved tensors of Node0 (id 7) · Net.first · train.py:12" in shown
    assert "and 4 more" in shown
    assert [one for one in shown if one in {".grad", "captured results"}] == [".grad"]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"num_unknown": 2},
            "Unknown, and not counted: the bytes saved by 2 nodes of pass 0",
        ),
        ({"is_complete": False}, "Events are missing from the trace"),
        ({"from_ns": 250, "until_ns": 600}, "shown: 250 ns to 600 ns after the start"),
        ({"stack": ((0, 0, 0, 0, 0, KIB),)}, "perhaps besides"),
        (
            {
                "peak": MemoryMoment(
                    after_ns=0,
                    use=use(total=KIB, buffers=KIB, saved=None),
                    holders=(),
                    num_holders=0,
                ),
                "stack": ((0, KIB, None, 0, 0, 0),),
            },
            "Unknown, and not drawn: saved tensors of pass 0.",
        ),
    ],
)
def test_a_memory_picture_reports_the_gaps_in_its_figures(changes, told) -> None:
    assert any(told in one for one in texts(render_memory([memory(**changes)])))


def test_a_peak_of_which_a_part_is_unknown_is_a_least() -> None:
    peak = MemoryMoment(
        after_ns=0,
        use=use(total=KIB, buffers=KIB, saved=None),
        holders=(),
        num_holders=0,
    )
    svg = render_memory([memory(peak=peak, stack=((0, KIB, None, 0, 0, 0),))])

    assert texts(svg).count("peak at least 1 KiB after 0 ns") == 2


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
    svg = render_memory([memory(**changes)], "train.py")

    assert f"Memory of backward pass 0 · {told} · train.py" in texts(svg)


def test_several_passes_have_one_scale_of_time_and_bytes() -> None:
    half = memory(
        tasks=(1,),
        duration_ns=500,
        until_ns=500,
        stack=((0, 0, 4 * KIB, 0, 0, 0),),
        peak=MemoryMoment(
            after_ns=0, use=use(total=4 * KIB), holders=(), num_holders=0
        ),
    )

    root = ET.fromstring(render_memory([memory(), half]))

    panels = [one for one in root.iter(f"{SVG}rect") if one.get("class") == "panel"]
    wide = [float(one.get("width")) for one in panels]
    assert wide[1] == pytest.approx(wide[0] / 2, abs=0.2)
    assert {"Backward pass 0, 1 µs", "Backward pass 1, 500 ns"} <= {*root.itertext()}


def test_nothing_held_is_an_empty_picture() -> None:
    nothing = MemoryMoment(after_ns=0, use=use(), holders=(), num_holders=0)
    svg = render_memory([memory(stack=((0, 0, 0, 0, 0, 0),), peak=nothing)])

    assert "peak 0 B after 0 ns" in texts(svg)


def test_names_of_a_trace_are_only_text(hostile) -> None:
    peak = MemoryMoment(
        after_ns=0,
        use=use(total=1),
        holders=(holder(hostile, module=hostile, location=hostile),),
        num_holders=1,
    )

    bad = ET.fromstring(render_memory([memory(peak=peak)], hostile))

    good = MemoryMoment(
        after_ns=0, use=use(total=1), holders=(holder("x"),), num_holders=1
    )
    benign = ET.fromstring(render_memory([memory(peak=good)], "x.py"))
    assert [one.tag for one in bad.iter()] == [one.tag for one in benign.iter()]


@pytest.mark.parametrize("wide", [400, 960, 3_000])
def test_nothing_reaches_beyond_the_picture(wide) -> None:
    root = ET.fromstring(render_memory([memory()], "p" * 500, wide))

    for rect in root.iter(f"{SVG}rect"):
        if rect.get("width") != "100%":
            assert float(rect.get("x", 0)) + float(rect.get("width")) <= wide
