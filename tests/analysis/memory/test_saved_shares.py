"""Saved tensors by who saved them, and what of memory is unknown."""

import gradviz as gv
from gradviz.analysis.memory.memory_use import HeldBytes, build_memory
from gradviz.analysis.memory.saved_shares import SavedShare
from gradviz.capture.session import record


def numbers(count):
    return gv.ones(count, dtype=gv.float64, requires_grad=True)


def test_shares_are_of_ops_modules_and_lines_the_largest_first():
    x = numbers(100)
    with record() as recording:
        y = (x * 1).sin().sin()
        (y.exp() * 2).sum().backward()

    saved = build_memory(recording.trace, recording.trace.tasks).saved

    assert saved.by_op == (
        SavedShare(name="SinBackward0", size_bytes=1600, num_nodes=2),
        SavedShare(name="ExpBackward0", size_bytes=800, num_nodes=1),
    )
    assert [one.size_bytes for one in saved.by_node] == [800, 800, 800]
    assert [one.num_nodes for one in saved.by_module] == [3]
    assert [one.size_bytes for one in saved.by_line] == [1600, 800]
    assert saved.size_bytes == 2400


def test_saved_memory_from_before_a_recording_is_unknown_and_not_zero():
    loss = numbers(8).sin().sum()
    with record() as recording:
        loss.backward()

    memory = build_memory(recording.trace, recording.trace.tasks)

    assert memory.saved.size_bytes is None
    assert memory.begin.saved is memory.peak.use.saved is memory.end.saved is None
    assert memory.end.gradients == 64
    assert {row[2] for row in memory.stack} == {None}
    assert memory.curves["saved"] == ()


def test_purposes_whose_events_were_left_out_are_unknown():
    with record(events="node_*") as recording:
        numbers(8).sin().sum().backward()

    memory = build_memory(recording.trace, recording.trace.tasks)

    unknown = dict.fromkeys(("buffers", "saved", "gradients", "results"))
    assert memory.end == HeldBytes(total=None, unclaimed=0, **unknown)


def test_nothing_that_was_saved_is_zero_and_known():
    x = numbers(8)
    with record() as recording:
        x.sum().backward()

    memory = build_memory(recording.trace, recording.trace.tasks)

    assert (memory.begin.saved, memory.saved.size_bytes) == (0, 0)
    assert memory.saved.num_unknown == 0
