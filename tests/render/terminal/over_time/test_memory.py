import pytest

from gradviz.analysis.memory.levels import DeviceMemory
from gradviz.analysis.memory.memory_use import (
    HeldBytes,
    HeldMemory,
    Holder,
    MemoryMoment,
)
from gradviz.analysis.memory.saved_shares import SavedShare, SavedTensors
from gradviz.analysis.memory.savings import Saving
from gradviz.render.terminal.over_time.memory import (
    print_memory,
    print_memory_moment,
    saving_text,
)

MIB = 1 << 20


def use(**sizes):
    fields = dict.fromkeys(
        ("total", "buffers", "saved", "gradients", "results", "unclaimed"), 0
    )
    return HeldBytes(**(fields | sizes))


HOLDER = Holder(
    purpose="saved",
    size_bytes=3 << 20,
    node=7,
    task=-1,
    name="TanhBackward0",
    module="Net.0",
    location="/home/me/train.py:9",
    since_ns=-5,
    until_ns=800,
)
PEAK = MemoryMoment(
    after_ns=250,
    use=use(total=4 << 20, saved=4 << 20, unclaimed=1 << 10),
    holders=(HOLDER,),
    num_holders=9,
)


def make_memory(**changes):
    fields = {
        "tasks": (4,),
        "origin_ns": 0,
        "duration_ns": 1_000,
        "begin": use(total=2 << 20, saved=2 << 20),
        "peak": PEAK,
        "end": use(total=1 << 20, gradients=1 << 20),
        "curves": {
            "total": ((0, 2 << 20), (250, 4 << 20), (500, 1 << 20)),
            "results": ((0, 0),),
        },
        "stack": ((0, 0, 2 << 20, 0, 0, 0), (500, 0, 0, 1 << 20, 0, 0)),
        "from_ns": 0,
        "until_ns": 1_000,
        "savings": (),
        "devices": (),
        "num_unknown": 0,
        "is_complete": True,
    }
    return HeldMemory(**(fields | changes))


def saving(means, **changes):
    fields = {
        "means": means,
        "size_bytes": 2048,
        "num_nodes": 3,
        "where": "/home/me/train.py:9",
        "node": 7,
        "name": "TanhBackward0",
        "after_ns": 1_500,
    }
    return Saving(**(fields | changes))


def words(lines):
    return [" ".join(line.split()) for line in lines]


def test_the_figures_are_told_for_begin_peak_and_end_and_empty_purposes_are_not(shown):
    told = words(shown(lambda console: print_memory(make_memory(), console)))

    assert told[0] == "Backward pass 4: peak 4 MiB, after 250 ns"
    assert "all of it 2 MiB 4 MiB 1 MiB" in told
    assert "saved tensors 2 MiB 4 MiB 0 B" in told
    assert "perhaps besides 0 B 1 KiB 0 B" in told
    assert not any(line.startswith("results") for line in told)


def test_a_curve_is_as_wide_as_the_console(shown):
    lines = shown(lambda console: print_memory(make_memory(), console), width=93)

    assert "  all of it  " + "▄" * 20 + "█" * 20 + "▂" * 40 in lines


def test_holders_are_told_with_their_line_and_module(shown):
    told = words(shown(lambda console: print_memory(make_memory(), console), width=120))

    assert "Held at the peak, after 250 ns (1 of 9)" in told
    row = "- TanhBackward0 7 3 MiB saved tensors before 800 ns train.py:9 Net.0"
    assert row in told


def test_devices_have_a_row_and_a_curve(shown):
    device = DeviceMemory(
        device="sim:0",
        begin_bytes=512,
        peak_bytes=1024,
        peak_ns=10,
        end_bytes=0,
        curve=((0, 512), (10, 1024), (500, 0)),
    )
    memory = make_memory(devices=(device,))

    told = words(shown(lambda console: print_memory(memory, console)))

    assert "allocated on sim:0 512 B 1 KiB 0 B" in told
    assert any(line.startswith("on sim:0 █") for line in told)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"num_unknown": 2}, "What 2 nodes saved is unknown, and not counted"),
        ({"is_complete": False}, "Events are missing from the trace"),
        ({}, "A trace does not tell when a program drops its last reference"),
    ],
)
def test_the_output_reports_the_gaps_in_its_figures(changes, word, shown):
    lines = shown(lambda console: print_memory(make_memory(**changes), console))

    assert word in " ".join(words(lines))


@pytest.mark.parametrize(
    ("one", "told"),
    [
        (
            saving("checkpoint", where="Net.0"),
            "Checkpoint Net.0: 3 nodes of it saved 2 KiB, the last of which Tanh",
        ),
        (
            saving("earlier dependency", other=8, other_name="SinBackward0"),
            "for another 1.5 µs: for the gradient of SinBackward0 (8).",
        ),
        (
            saving("no retain_graph", after_ns=None),
            "The pass at train.py:9 kept its graph: 2 KiB that 3 nodes had used",
        ),
        (
            saving("let go", name="?"),
            "2 KiB besides may be held by 3 nodes, such as node 7 made at train.py:9",
        ),
    ],
)
def test_each_saving_is_a_sentence(one, told):
    assert told in saving_text(one)


def test_a_moment_is_told_by_purpose(shown):
    told = words(shown(lambda console: print_memory_moment(PEAK, console)))

    assert told[0] == "4 MiB held after 250 ns"
    assert "saved tensors 4,194,304 4 MiB" in told
    assert any(line.startswith("- TanhBackward0 7 3 MiB") for line in told)


def test_names_of_a_trace_are_only_text(shown):
    holder = HOLDER.__class__(
        **{
            **{name: getattr(HOLDER, name) for name in HOLDER.__struct_fields__},
            "name": "\x1b[31mBad",
            "location": "x\x1b]0;y\x07.py:1",
            "module": "[bold]",
        }
    )
    peak = MemoryMoment(after_ns=0, use=PEAK.use, holders=(holder,), num_holders=1)

    lines = shown(lambda console: print_memory(make_memory(peak=peak), console))

    assert "\x1b" not in "\n".join(lines)


def test_an_unknown_size_is_never_shown_as_zero(shown):
    peak = use(total=MIB, saved=None, gradients=MIB)
    memory = make_memory(
        begin=use(saved=None),
        peak=MemoryMoment(after_ns=250, use=peak, holders=(), num_holders=0),
        end=use(saved=None),
    )

    told = words(shown(lambda console: print_memory(memory, console)))

    assert told[0] == "Backward pass 4: peak at least 1 MiB, after 250 ns"
    assert "saved tensors unknown unknown unknown" in told


def test_an_op_that_saved_most_is_listed_with_its_nodes_and_bytes(shown):
    share = SavedShare(name="ExpBackward0", size_bytes=MIB, num_nodes=2)
    saved = SavedTensors(
        size_bytes=MIB,
        parameter_bytes=2 * MIB,
        shared_bytes=512,
        num_unknown=0,
        by_node=(),
        by_op=(share,),
        by_module=(),
        by_line=(),
    )

    told = words(shown(lambda console: print_memory(make_memory(saved=saved), console)))

    assert "op 2 nodes 1 MiB ExpBackward0" in told
    assert (
        "2 MiB that parameters and buffers hold anyway, and 512 B of views"
        in " ".join(told)
    )
