import msgspec
import pytest

from gradviz.analysis.changes.pass_comparison import (
    ChangedNode,
    ComparedPass,
    Comparison,
    FieldDifference,
    MovedNode,
    PlacedNode,
    TimeDifference,
)
from gradviz.analysis.training.usual_times import UsualTime
from gradviz.render.terminal.comparison import print_comparison


def node(number, **changes):
    fields = {
        "node": number,
        "name": "MulBackward0",
        "device": "cpu",
        "line": "model.py:7",
        "module": "Net.body",
        "place": number,
    }
    return PlacedNode(**(fields | changes))


def usual(median_ns, passes=6):
    return UsualTime(median_ns=median_ns, deviation_ns=1_000, passes=passes)


def time(before, after, *, of=True, passes=6):
    return TimeDifference(
        before=node(1) if of else None,
        after=node(2) if of else None,
        usual_before=usual(before, passes),
        usual_after=usual(after, passes),
        is_significant=after > 2 * before,
    )


def side(name, **changes):
    fields = {
        "trace": f"/tmp/{name}.gvt",
        "task": 5,
        "status": "completed",
        "num_nodes": 9,
        "num_edges": 10,
        "num_lost": 0,
    }
    return ComparedPass(**(fields | changes))


def make(**changes):
    fields = {
        "before": side("a"),
        "after": side("b"),
        "num_matched": 9,
        "num_same_edges": 10,
        "is_related": True,
    }
    return Comparison(**(fields | changes))


DIFFERENT = make(
    vanished=(node(3),),
    num_vanished=1,
    appeared=(node(4, name="x\x1b[31m"),) * 60,
    num_appeared=70,
    changed=(
        ChangedNode(
            before=node(5),
            after=node(6),
            differences=(
                FieldDifference("device", "cpu", "sim:0"),
                FieldDifference("line", "a.py:1", "a.py:2"),
            ),
        ),
    ),
    num_changed=1,
    moved=(MovedNode(before=node(7), after=node(8)),),
    num_moved=1,
    duration=time(10_000, 30_000, of=False),
    times=(time(1_000, 1_100),),
)


@pytest.mark.parametrize("width", [80, 200])
def test_each_kind_of_difference_has_its_table(width, shown):
    lines = shown(lambda to: print_comparison(DIFFERENT, to), width)
    text = "\n".join(lines)

    assert lines[0] == "A  a.gvt, pass 5: 9 nodes, 10 edges"
    assert lines[2] == "9 nodes in both, 1 only in A, 70 only in B, 1 changed, 1 moved"
    assert "Only in B (50 of 70)" in text
    assert text.count(" x ") == 50
    assert "\x1b" not in text
    assert "device  cpu   sim:0" in text
    assert "a.py:1" not in text
    assert "not counted: the line of 1 node" in text
    assert "Moved in the order of its device" in text
    assert "medians of 6 and 6 passes alike" in text
    assert "10 µs ± 1 µs   30 µs ± 1 µs   +200%  !" in text
    assert max(map(len, lines)) <= width


def test_identical_passes_are_reported_in_one_line(shown):
    lines = shown(lambda to: print_comparison(make(), to))

    assert lines[2:] == ["The same graph in the same order: 9 nodes in both"]


def test_different_programs_are_a_line(shown):
    other = make(is_related=False, num_same_edges=1)

    lines = shown(lambda to: print_comparison(other, to))

    assert len(lines) == 3
    assert "too little in common" in lines[2]
    assert lines[2].endswith("1 edge")


def test_single_passes_have_no_deviation(shown):
    comparison = make(duration=time(1_000, 2_000, of=False, passes=1))

    text = "\n".join(shown(lambda to: print_comparison(comparison, to)))

    assert "±" not in text
    assert "+100%" in text


def test_the_outcome_and_losses_of_a_pass_stand_beside_it(shown):
    failed = side("b", status="failed", num_lost=2)
    comparison = msgspec.structs.replace(make(), after=failed)

    lines = shown(lambda to: print_comparison(comparison, to))

    assert lines[1].endswith("10 edges, failed, 2 definitions lost")
