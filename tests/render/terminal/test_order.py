import pytest

from gradviz.analysis.nodes.execution_order import Order, OrderRow
from gradviz.render.terminal.order import print_order
from gradviz.trace.events import MAX_SEQUENCE_NR


def row(index=0, **changes):
    fields = {
        "index": index,
        "node": 40 + index,
        "name": "MulBackward0",
        "sequence_nr": 9 - index,
        "topological_nr": 3,
        "device": "cpu",
        "thread": 0,
        "start_ns": 1_000 + index,
        "end_ns": 2_500,
        "waited_ns": 20,
    }
    return OrderRow(**(fields | changes))


def order(*rows, **changes):
    fields = {"task": 4, "begin_ns": 1_000, "rows": rows, "omitted": 0}
    return Order(**({"num_nodes": len(rows)} | fields | changes))


def words(line):
    return " ".join(line.split())


#: A row of which everything is known.
KNOWN = {
    "module": "Net.encoder.layers.0",
    "location": "/home/me/train.py:12",
    "shapes": ((32, 10), None),
}


def test_a_narrow_console_shows_what_matters(shown):
    lines = shown(lambda console: print_order(order(row(**KNOWN)), console))

    assert lines[0] == "Backward pass 4: 1 node in the order they ran"
    assert lines[1].split() == [
        *("#", "node", "name", "module", "line"),
        *("seq", "start", "took", "queued"),
    ]
    assert lines[2].split() == [
        *("0", "40", "MulBackward0", "…ncoder.layers.0", "train.py:12"),
        *("9", "0", "ns", "1.5", "µs", "20", "ns"),
    ]


#: Rows of which the parameter and the line are long.
LONG = {
    **KNOWN,
    "name": "ScaledDotProductFlashAttentionForCpuBackward0",
    "location": "/home/me/transformer_of_mine.py:1234",
    "parameters": ("Net.encoder.layers.11.self_attn.in_proj_weight",),
    "node": 12345,
    "waited_ns": 123_456,
}


@pytest.mark.parametrize("width", [80, 100, 120, 200])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"processor_wait_ns": 123_456, "thread_time_ns": 1_234},
        {"worker": 3, "processor_wait_ns": 123_456},
        {"status": "failed", "error": "RuntimeError: " + "too long " * 10},
    ],
)
def test_the_parameter_and_the_line_are_shown_from_80_columns_on(shown, width, changes):
    some = order(row(**(LONG | changes)), row(1, **LONG))

    lines = shown(lambda console: print_order(some, console), width=width)

    assert {"name", "parameter", "line", "took"} <= set(lines[1].split())
    assert "weight" in lines[2]
    assert ":1234" in lines[2]
    assert max(map(len, lines)) <= width


def test_a_very_narrow_console_has_the_columns_that_are_always_shown(shown):
    lines = shown(lambda console: print_order(order(row(**LONG)), console), width=40)

    assert lines[2].split() == ["#", "node", "name", "took", "queued"]


def test_starts_count_from_the_begin_of_the_pass_whatever_is_shown(shown):
    some = order(row(7, start_ns=9_000), begin_ns=500, num_nodes=8)

    lines = shown(lambda console: print_order(some, console), width=200)

    start = lines[1].split().index("start")
    assert lines[2].split()[start : start + 2] == ["8.5", "µs"]


def test_a_wide_console_shows_everything(shown):
    lines = shown(lambda console: print_order(order(row(**KNOWN)), console), width=200)

    assert lines[1].split() == [
        *("#", "node", "name", "module", "line", "shape", "seq", "depth"),
        *("device", "thread", "start", "took", "queued"),
    ]
    assert words(lines[2]) == (
        "0 40 MulBackward0 Net.encoder.layers.0 train.py:12 (32, 10) any 9 3 cpu 0 "
        "0 ns 1.5 µs 20 ns"
    )


def test_a_column_of_nothing_is_left_out(shown):
    lines = shown(lambda console: print_order(order(row()), console), width=200)

    assert {"module", "line", "shape", "status"}.isdisjoint(lines[1].split())


def test_a_part_of_the_rows_says_so_and_by_what_it_is_sorted(shown):
    some = order(row(7), row(3), num_nodes=16, sort="took")
    lines = shown(lambda console: print_order(some, console))

    assert lines[0] == "Backward pass 4: 2 of 16 nodes sorted by took"
    assert [line.split()[0] for line in lines[2:]] == ["7", "3"]


@pytest.mark.parametrize("width", [80, 200])
def test_no_line_is_wider_than_the_console(shown, width):
    rows = [
        row(index, name="VeryLong" * 20, device="a-long-device:17")
        for index in range(3)
    ]

    lines = shown(lambda console: print_order(order(*rows), console), width=width)

    assert len(lines) == 5
    assert max(map(len, lines)) <= width
    assert "…" in lines[2]


def test_unknown_times_are_shown_as_dashes(shown):
    unknown = {"end_ns": None, "waited_ns": None, "status": "unfinished"}
    rows = [row(sequence_nr=MAX_SEQUENCE_NR, **unknown)]

    lines = shown(lambda console: print_order(order(*rows), console))

    assert lines[2].split() == [
        *("0", "40", "MulBackward0", "max", "cpu"),
        *("0", "0", "ns", "-", "-", "unfinished"),
    ]


def test_a_node_that_failed_has_a_time_and_its_error(shown):
    rows = [row(0), row(1, status="failed", error="ValueError: no")]

    lines = shown(lambda console: print_order(order(*rows), console), width=100)

    assert words(lines[1]).endswith("took queued status")
    assert words(lines[2]).endswith("1.5 µs 20 ns")
    assert words(lines[3]).endswith("1.5 µs 20 ns failed: ValueError: no")


def test_a_node_that_was_only_captured_says_so(shown):
    lines = shown(lambda console: print_order(order(row(status="captured")), console))

    assert lines[2].endswith("captured")


def test_hostile_names_are_shown_and_do_nothing(shown, hostile):
    rows = [row(name=hostile, device=hostile)]

    lines = shown(lambda console: print_order(order(*rows), console), width=200)

    assert len(lines) == 3
    assert all(line.isprintable() for line in lines)


def test_markup_in_a_name_is_text(shown):
    lines = shown(
        lambda console: print_order(order(row(name="[bold]x[/bold]")), console)
    )

    assert "[bold]x[/bold]" in lines[2]


def test_a_pass_in_which_nothing_ran_is_shown(shown):
    lines = shown(lambda console: print_order(order(), console))

    assert lines[0] == "Backward pass 4: 0 nodes in the order they ran"


def test_processor_time_and_who_lost_it_are_told_beside_the_time_that_passed(shown):
    rows = [
        row(0, end_ns=9_000_000, thread_time_ns=200_000, processor_wait_ns=8_700_000),
        row(1, thread_time_ns=1_500),
    ]

    wide = shown(lambda console: print_order(order(*rows), console), width=200)
    narrow = shown(lambda console: print_order(order(rows[1]), console), width=60)

    assert [*wide[1].split()[-4:]] == ["took", "running", "lost", "queued"]
    assert "9 ms   200 µs  8.7 ms" in wide[2]
    assert words(wide[3]).endswith("1.5 µs 1.5 µs 20 ns")
    assert {"running", "lost"}.isdisjoint(narrow[1].split())
