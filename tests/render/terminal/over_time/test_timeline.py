import msgspec
import pytest

from gradviz.render.terminal.over_time.timeline import print_timeline

GUTTER = len("Main  ")


def bars(lines, number=0):
    return lines[2 + number][GUTTER:]


def test_a_bar_covers_its_share_of_the_line(shown, make_span, make_timeline):
    timeline = make_timeline(
        [make_span(0, 0, 50), make_span(1, 75, 100)], duration_ns=100
    )

    lines = shown(lambda console: print_timeline(timeline, console), width=46)

    assert bars(lines) == "█ 0 Mul ████████████" + " " * 10 + "█ 1 Mul ██"


def test_a_column_is_filled_as_far_as_anything_ran(shown, make_span, make_timeline):
    timeline = make_timeline([make_span(0, 0, 51)], duration_ns=100)

    lines = shown(lambda console: print_timeline(timeline, console), width=46)

    assert bars(lines) == "█ 0 Mul ████████████▍".ljust(40)


def test_sleep_is_dotted(shown, make_span, make_timeline):
    timeline = make_timeline(
        [make_span(0, 0, 50), make_span(1, 50, 100, kind="wait")], duration_ns=100
    )

    lines = shown(lambda console: print_timeline(timeline, console), width=46)

    assert bars(lines).endswith("·" * 20)
    assert "·· waiting for work" in " ".join(lines[3:])


def test_streams_are_lanes_and_kernels_bars(shown, make_span, make_timeline):
    timeline = make_timeline(
        [make_span(0, 0, 50)],
        [
            make_span(0, 0, 50, kind="kernel", name="multiply"),
            make_span(-1, 50, 100, kind="kernel", name="add", node=-1, task=-1),
        ],
        duration_ns=100,
        names=("Main", "Side"),
    )

    lines = shown(lambda console: print_timeline(timeline, console), width=66)

    assert lines[0].endswith("1 node, 1 thread, 1 stream")
    assert lines[3].startswith("Side")
    assert bars(lines, 1) == "█ 0 multiply ".ljust(30, "█") + "█ add ".ljust(30, "█")


def test_runs_of_one_node_are_told_apart_from_nodes(shown, make_span, make_timeline):
    timeline = make_timeline(
        [make_span(0, 0, 50, node=7), make_span(0, 50, 100, node=7)], duration_ns=100
    )

    lines = shown(lambda console: print_timeline(timeline, console), width=66)

    assert lines[0].endswith("2 runs of 1 node, 1 thread")


def test_inner_passes_are_on_lines_below(shown, make_span, make_timeline):
    timeline = make_timeline(
        [make_span(0, 0, 100), make_span(1, 50, 100, row=1)], duration_ns=100
    )

    lines = shown(lambda console: print_timeline(timeline, console), width=46)

    assert bars(lines, 1) == " " * 20 + "█ 1 Mul ████████████"


def test_a_failure_is_named_in_the_legend(shown, make_span, make_timeline):
    timeline = make_timeline([make_span(2, 0, 50, status="failed")], duration_ns=100)

    lines = shown(lambda console: print_timeline(timeline, console))

    assert "2 Mul failed" in lines[-1]


@pytest.mark.parametrize("width", [30, 80, 200])
def test_no_line_is_wider_than_the_console(shown, width, make_span, make_timeline):
    spans = [make_span(index, 10 * index, 10 * index + 9) for index in range(100)]
    timeline = make_timeline(
        spans, spans, duration_ns=1_000, names=("A very long name of a thread", "B")
    )

    lines = shown(lambda console: print_timeline(timeline, console), width=width)

    assert max(map(len, lines)) <= max(width, 40)


def test_the_ruler_ends_with_the_duration(shown, make_span, make_timeline):
    timeline = make_timeline([make_span(0, 0, 1_500)], duration_ns=1_500)

    lines = shown(lambda console: print_timeline(timeline, console))

    assert lines[1].startswith(" " * GUTTER + "╷0 ns")
    assert lines[1].endswith("1.5 µs╷")
    assert len(lines[1]) == 80


def test_hostile_names_are_shown_and_do_nothing(
    shown, hostile, make_span, make_timeline
):
    span = make_span(0, 0, 100, name=hostile, status="failed", error=hostile)
    timeline = make_timeline([span], duration_ns=100, names=(hostile,))

    lines = shown(lambda console: print_timeline(timeline, console), width=200)

    assert all(line.isprintable() for line in lines)
    assert len(lines) == 5


def test_failed_nodes_are_listed_below_the_timeline(shown, make_span, make_timeline):
    spans = [
        make_span(index, index, index + 1, status="failed", error=f"E: {index}")
        for index in range(7)
    ]
    timeline = make_timeline(spans, duration_ns=7)

    lines = shown(lambda console: print_timeline(timeline, console))

    assert lines[-6:] == [
        *(f"{index} Mul failed: E: {index}" for index in range(5)),
        "and 2 more failed",
    ]


def test_the_legend_has_a_color_for_nodes_that_were_only_captured(
    shown, make_span, make_timeline
):
    timeline = make_timeline([make_span(0, 0, 9, status="captured")], duration_ns=9)

    lines = shown(lambda console: print_timeline(timeline, console))

    assert "█ captured" in lines[-1]


def test_a_timeline_without_lanes_is_shown(shown, make_timeline):
    lines = shown(lambda console: print_timeline(make_timeline(duration_ns=0), console))

    assert lines[0] == "Backward pass 4: 0 ns, 0 nodes, 0 threads"


def test_a_pass_has_its_own_duration_even_where_streams_go_on(
    shown, make_span, make_timeline
):
    timeline = make_timeline([make_span(0, 0, 9)], duration_ns=9)
    longer = msgspec.structs.replace(timeline, duration_ns=20)

    lines = shown(lambda console: print_timeline(longer, console))

    assert lines[0] == "Backward pass 4: 9 ns (shown: 20 ns), 1 node, 1 thread"


def test_the_parts_of_a_step_are_bars_and_in_the_legend(
    shown, make_span, make_timeline
):
    timeline = make_timeline(
        [
            make_span(-1, 0, 50, kind="forward", name="Net.encoder"),
            make_span(-1, 50, 75, kind="backward", name="backward"),
            make_span(-1, 75, 100, kind="optimizer", name="SGD"),
        ],
        duration_ns=100,
    )
    whole = msgspec.structs.replace(timeline, step=3)

    lines = shown(lambda console: print_timeline(whole, console), width=46)

    assert lines[0] == "Step 3: 100 ns, 0 nodes, 1 thread"
    assert bars(lines) == "█ Net.encoder ██████" + "██████████" + "█ SGD ████"
    legend = " ".join(lines[3:])
    assert [part in legend for part in ("█ forward", "█ backward", "█ optimizer")] == [
        True
    ] * 3
