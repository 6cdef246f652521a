import re
import xml.etree.ElementTree as ET

import msgspec
import pytest

from gradviz.render import style
from gradviz.render.graph.graph_scene import build_scene
from gradviz.render.timeline.timeline_scene import TimelineView
from gradviz.render.timeline.timeline_svg import render_timeline

SVG = "{http://www.w3.org/2000/svg}"


def texts(picture):
    return ["".join(one.itertext()) for one in picture.iter(f"{SVG}text")]


def drawn(timeline, **options):
    return ET.fromstring(render_timeline(timeline, TimelineView(**options)))


def of_class(picture, name):
    return [
        one
        for one in picture.iter(f"{SVG}rect")
        if name in one.get("class", "").split()
    ]


def structure(picture):
    return [(one.tag, sorted(one.attrib)) for one in picture.iter()]


def test_each_thread_has_a_lane_with_its_name_and_load(make_span, make_timeline):
    timeline = make_timeline(
        [make_span(0, 0, 50)],
        [make_span(1, 50, 100), make_span(2, 100, 125)],
        duration_ns=200,
        names=("MainThread", "gv_autograd_0"),
    )

    shown = texts(drawn(timeline))

    assert {"MainThread", "gv_autograd_0"} <= set(shown)
    assert {"1 node, 25 % busy", "2 nodes, 38 % busy"} <= set(shown)


def test_each_stream_has_a_lane_with_its_name_and_load(make_span, make_timeline):
    timeline = make_timeline(
        [make_span(0, 0, 50)],
        [
            make_span(0, 50, 100, kind="kernel", name="multiply"),
            make_span(-1, 100, 200, kind="kernel", name="add", node=-1, task=-1),
        ],
        duration_ns=200,
        names=("MainThread", "sim:0/1"),
    )

    shown = texts(drawn(timeline))

    assert {"sim:0/1", "2 kernels, 75 % busy"} <= set(shown)
    assert {"0 multiply", "add"} <= set(shown)
    assert "Backward pass 4: 200 ns" in shown
    assert "1 node · 1 thread · 1 stream · numbers: execution order" in shown


def test_a_kernel_says_who_launched_it(make_span, make_timeline):
    timeline = make_timeline(
        [
            make_span(0, 0, 50, kind="kernel", name="multiply"),
            make_span(-1, 50, 100, kind="kernel", name="add", node=-1, task=-1),
        ],
        duration_ns=100,
    )

    told = {one.text.splitlines()[0] for one in drawn(timeline).iter(f"{SVG}title")}

    assert "multiply, launched by #0 (id 100) of pass 4" in told
    assert "add, launched by the program" in told


def test_kernels_too_short_to_be_seen_are_counted(make_span, make_timeline):
    spans = [make_span(0, n, n + 1, kind="kernel") for n in range(3)]
    timeline = make_timeline(spans, duration_ns=10_000)

    told = {one.text for one in drawn(timeline).iter(f"{SVG}title")}

    assert "3 kernels, 3 ns together\nMul: 3, 3 ns" in told


def test_a_bar_has_its_number_and_operation(make_span, make_timeline):
    picture = drawn(make_timeline([make_span(3, 0, 100)], duration_ns=100))

    assert "3 Mul" in texts(picture)


def test_bars_stand_where_their_times_say(make_span, make_timeline):
    timeline = make_timeline(
        [make_span(0, 0, 25), make_span(1, 50, 100)], duration_ns=100
    )

    first, second = of_class(drawn(timeline), "bar")

    left, wide = (float(first.get(name)) for name in ("x", "width"))
    room = 4 * wide
    assert float(second.get("x")) == pytest.approx(left + room / 2, abs=0.2)
    assert float(second.get("width")) == pytest.approx(room / 2, abs=0.2)


def test_nothing_reaches_beyond_the_picture(make_span, make_timeline):
    timeline = make_timeline([make_span(0, 0, 10)] * 3, duration_ns=10)

    picture = drawn(timeline)

    wide, high = (float(picture.get(name)) for name in ("width", "height"))
    for rect in picture.iter(f"{SVG}rect"):
        if rect.get("width") != "100%":
            assert float(rect.get("x", 0)) + float(rect.get("width")) <= wide
            assert float(rect.get("y", 0)) + float(rect.get("height")) <= high


def test_inner_passes_lie_below_the_node_that_called_them(make_span, make_timeline):
    timeline = make_timeline(
        [make_span(0, 0, 100), make_span(1, 20, 60, row=1)], duration_ns=100
    )

    outer, inner = of_class(drawn(timeline), "bar")

    assert float(inner.get("y")) > float(outer.get("y"))


def test_sleeping_is_hatched_and_explained(make_span, make_timeline):
    timeline = make_timeline(
        [make_span(0, 0, 50), make_span(1, 50, 90, kind="wait")], duration_ns=100
    )

    picture = drawn(timeline)

    assert len(of_class(picture, "wait")) == 2  # the lane and the legend
    assert "asleep on its empty queue" in texts(picture)


def test_a_failure_is_marked_and_explained(make_span, make_timeline):
    failed = make_span(0, 0, 50, status="failed", error="ValueError: no")
    timeline = make_timeline([failed], duration_ns=100)

    picture = drawn(timeline)

    assert len(of_class(picture, "failed")) == 2
    assert "failed" in texts(picture)
    assert "✕ 0 Mul failed: ValueError: no" in texts(picture)


def test_a_node_that_was_only_captured_is_pale(make_span, make_timeline):
    timeline = make_timeline([make_span(0, 0, 50, status="captured")], duration_ns=100)

    picture = drawn(timeline)

    assert len(of_class(picture, "captured")) == 2
    assert "captured" in texts(picture)
    assert of_class(picture, "failed") == []


def test_colors_can_stand_for_devices(make_span, make_timeline):
    timeline = make_timeline(
        [make_span(0, 0, 50), make_span(1, 50, 90, device="sim:0")], duration_ns=100
    )

    assert {"cpu", "sim:0"} <= set(texts(drawn(timeline, color_by="device")))


def test_operations_beyond_the_palette_share_a_color(make_span, make_timeline):
    spans = [
        make_span(index, 10 * index, 10 * index + 10, name=f"Op{index:02}Backward0")
        for index in range(12)
    ]

    picture = drawn(make_timeline(spans, duration_ns=120), color_by="name")

    assert "others" in texts(picture)


def test_each_thread_that_called_passes_has_a_row_of_them(make_span, make_timeline):
    timeline = make_timeline([make_span(0, 0, 90)], duration_ns=100)
    (one,) = timeline.passes
    other = msgspec.structs.replace(one, task=5, begin_ns=50)
    both = (msgspec.structs.replace(one, end_ns=50), other)

    shown = texts(drawn(msgspec.structs.replace(timeline, passes=both)))

    assert {"calls 2 passes", "pass 4", "pass 5"} <= set(shown)
    assert "2 backward passes: 100 ns" in shown


def test_the_axis_has_units(make_span, make_timeline):
    shown = texts(drawn(make_timeline([make_span(0, 0, 9)], duration_ns=1_000_000)))

    assert {"0", "200 µs", "1 ms"} <= set(shown)


def test_hostile_names_change_nothing_but_text(hostile, make_span, make_timeline):
    def timeline(text):
        span = make_span(0, 0, 90, name=text, device=text, status="failed", error=text)
        return make_timeline([span], duration_ns=100, names=(text,))

    assert structure(drawn(timeline(hostile))) == structure(drawn(timeline("x")))


def test_tens_of_thousands_of_spans_make_a_small_file(make_span, make_timeline):
    # Alternating so that every second one is too narrow to be seen.
    lanes = [
        [
            make_span(index, 40 * index, 40 * index + (30 if index % 2 else 1))
            for index in range(5_000)
        ]
        for _ in range(8)
    ]

    data = render_timeline(make_timeline(*lanes, duration_ns=200_000))

    assert len(data) < 2_000_000
    assert b"narrow spans drawn as" in data


def test_the_sizes_of_text_are_those_that_were_measured(make_span, make_timeline):
    data = render_timeline(make_timeline([make_span(0, 0, 9)], duration_ns=10))

    assert re.search(rb"\.label \{ font-size: 11px", data)


def test_leaves_have_the_same_color_in_every_picture(make_span, make_timeline):
    leaf = make_span(0, 0, 50, name="AccumulateGrad")
    alone = make_timeline([leaf], duration_ns=100)
    others = [make_span(index, 50, 60, name=f"Op{index}") for index in range(1, 12)]

    (bar,) = of_class(drawn(alone), "bar")
    assert bar.get("fill") == of_class(
        drawn(make_timeline([leaf, *others], duration_ns=100)), "bar"
    )[0].get("fill")


def test_a_pass_in_which_nothing_ran_is_a_picture_too(make_timeline):
    shown = texts(drawn(make_timeline(duration_ns=0)))

    assert "Backward pass 4: 0 ns" in shown
    assert "No node ran, as far as the trace knows" in shown


def test_a_step_has_bars_for_its_parts_and_a_title_of_its_own(make_span, make_timeline):
    timeline = make_timeline(
        [
            make_span(-1, 0, 50, kind="forward", name="Net.encoder"),
            make_span(-1, 75, 100, kind="optimizer", name="SGD"),
        ],
        duration_ns=100,
    )

    shown = texts(drawn(msgspec.structs.replace(timeline, step=3)))

    assert "Step 3: 100 ns" in shown
    assert {"Net.encoder", "SGD", "forward", "optimizer"} <= set(shown)
    assert "backward" not in shown


def test_a_leaf_is_called_as_its_parameter(make_span, make_timeline):
    leaf = make_span(
        3, 0, 100, name="AccumulateGrad", parameters=("Net.layers.0.weight",)
    )
    picture = drawn(make_timeline([leaf], duration_ns=100))

    assert "3 Net.layers.0.weight" in texts(picture)


def test_of_a_long_parameter_the_end_is_shown(make_span, make_timeline):
    name = ".".join(["Net", *["layers"] * 30, "weight"])
    leaf = make_span(3, 0, 100, name="AccumulateGrad", parameters=(name,))

    shown = texts(drawn(make_timeline([leaf], duration_ns=100)))

    (label,) = [one for one in shown if one.startswith("3 ")]
    assert label.endswith("layers.weight")
    assert name.endswith(label.removeprefix("3 "))


def test_forward_and_backward_of_a_module_have_its_color(make_span, make_timeline):
    spans = [
        make_span(-1, 0, 40, kind="forward", name="Net.a", node=-1, task=-1),
        make_span(-1, 40, 90, kind="forward", name="Net.b", node=-1, task=-1),
        make_span(0, 90, 140, module="Net.b"),
        make_span(1, 140, 200, module="Net.a"),
        make_span(2, 200, 250),
    ]
    picture = drawn(make_timeline(spans, duration_ns=250), color_by="module")

    fills = [one.get("fill") for one in of_class(picture, "bar")][-5:]
    assert fills[0] == fills[3] != fills[1] == fills[2]
    assert fills[4] not in fills[:4]
    assert {"Net.a", "Net.b", "outside of any module"} <= set(texts(picture))


def test_a_node_is_called_what_the_picture_of_the_graph_calls_it(
    make_span, make_timeline, make_graph
):
    timeline = make_timeline(
        [make_span(0, 0, 50), make_span(1, 50, 100)], duration_ns=100
    )
    boxes = build_scene(make_graph(2, [(0, 1)])).boxes

    shown = [one.text or "" for one in drawn(timeline).iter(f"{SVG}title")]

    for box in boxes:
        words = box.tooltip.splitlines()[0]
        assert any(one.startswith(f"{words} of pass ") for one in shown), words


def test_of_many_models_those_that_took_most_time_have_a_color(
    make_span, make_timeline
):
    ends = [0, *range(10, 100, 10), 200]
    spans = [
        make_span(at, ends[at], ends[at + 1], module=f"Net{at}") for at in range(10)
    ]
    picture = drawn(make_timeline(spans, duration_ns=200), color_by="module")

    named = [one for one in texts(picture) if one.startswith("Net")]
    assert len(named) == len(style.PALETTE)
    assert named[-1] == "Net9"
    assert of_class(picture, "bar")[-1].get("fill") == style.PALETTE[-1]


def test_the_legend_names_no_color_that_no_bar_has(make_span, make_timeline):
    spans = [make_span(0, 0, 50, module="Net.a"), make_span(1, 50, 100, module="Net.b")]
    picture = drawn(make_timeline(spans, duration_ns=100), color_by="module")

    assert {"Net.a", "Net.b"} <= set(texts(picture))
    assert "outside of any module" not in texts(picture)
