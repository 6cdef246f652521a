import pytest

from gradviz.render.timeline.span_text import BAR_TEXT, fitting, tooltip
from gradviz.render.words.text import width


@pytest.mark.parametrize(
    ("room", "expected"),
    [(100, "7 MulInto"), (58, "7 MulI…"), (40, "7"), (20, "7"), (8, "")],
)
def test_a_bar_says_as_much_as_it_has_room_for(make_span, room, expected):
    span = make_span(7, 0, 1, name="MulIntoBackward0")

    text = fitting(span, room)

    assert text == expected
    assert width(text, BAR_TEXT) <= room


def test_a_call_of_a_module_says_its_path_or_the_end_of_it(make_span):
    call = make_span(-1, 0, 1_000, kind="forward", name="Net.layers.0.norm", device="")

    assert [fitting(call, room) for room in (300, 100, 60, 40, 5)] == [
        "Net.layers.0.norm",
        "layers.0.norm",
        "0.norm",
        "norm",
        "",
    ]
    assert tooltip([call]) == "forward: Net.layers.0.norm\ntook 1 µs, from 0 ns"
    assert tooltip([call] * 2).splitlines()[0] == "2 calls of forward, 2 µs together"


def test_a_pass_says_its_name_or_its_number(make_span):
    one = make_span(-1, 0, 9, kind="backward", name="pass 12", task=12)

    assert [fitting(one, room) for room in (100, 25, 8)] == ["pass 12", "12", ""]


@pytest.mark.parametrize(
    ("kind", "name", "label", "told"),
    [
        ("wait", "waiting", "asleep", "asleep, its queue was empty: 9 ns, from 0 ns"),
        (
            "blocked",
            "sim:0/1",
            "waits for sim:0/1",
            "blocked, waits for stream sim:0/1: 9 ns, from 0 ns",
        ),
        ("setup", "set-up", "setup", "setup of pass 4: 9 ns, from 0 ns"),
        ("finish", "end", "end", "end of pass 4: 9 ns, from 0 ns"),
    ],
)
def test_time_without_nodes_says_why(make_span, kind, name, label, told):
    span = make_span(-1, 0, 9, kind=kind, name=name)

    assert fitting(span, 200) == label
    assert tooltip([span]) == told


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


def test_a_bar_of_many_counts_them_and_names_those_that_took_most(make_span):
    took = {"Mm": 300, "Add": 200, "Tanh": 100, "Sum": 90, "Mul": 80, "Exp": 1}
    spans = [make_span(0, 0, ns, name=f"{op}Backward0") for op, ns in took.items()]
    spans += [
        make_span(0, 0, 50, name="MmBackward0", status="failed"),
        make_span(-1, 0, 30, kind="wait", name="waiting"),
    ]

    assert tooltip(spans).splitlines() == [
        "7 nodes, 821 ns together",
        "1 sleep, 30 ns together",
        "Mm: 2, 350 ns",
        "Add: 1, 200 ns",
        "Tanh: 1, 100 ns",
        "Sum: 1, 90 ns",
        "Mul: 1, 80 ns",
        "and 1 more name",
        "1 failed",
    ]
