import pytest

from gradviz.analysis.causes.critical_path import CriticalPath, NodeCost, Segment
from gradviz.render.terminal.over_time.critical_path import (
    MAX_SEGMENTS,
    print_critical_path,
)


def segment(begin_ns, end_ns, **changes):
    fields = {
        "kind": "running",
        "thread": 0,
        "stream": "",
        "task": 4,
        "node": 9,
        "name": "MulBackward0",
        "index": 3,
    }
    return Segment(begin_ns=begin_ns, end_ns=end_ns, **(fields | changes))


def path(*segments, **changes):
    fields = {
        "task": 4,
        "status": "completed",
        "is_whole": True,
        "origin_ns": 0,
        "duration_ns": segments[-1].end_ns,
        "totals": {"running": segments[-1].end_ns},
        "num_segments": len(segments),
        "nodes": (
            NodeCost(
                task=4,
                node=9,
                name="MulBackward0",
                thread=0,
                own_ns=500,
                on_path_ns=500,
                slack_ns=0,
                if_free_ns=600,
                usual_ns=450,
                index=3,
            ),
        ),
        "num_runs": 1,
        "num_nodes": 1,
        "num_alike": 1,
        "num_recomputed": 1,
        "threads": {0: "MainThread"},
    }
    return CriticalPath(segments=segments, **(fields | changes))


def words(lines):
    return [" ".join(line.split()) for line in lines]


def test_runs_of_one_node_are_told_apart_from_nodes(shown):
    one = path(segment(0, 500), num_runs=3, num_nodes=2)

    lines = words(shown(lambda console: print_critical_path(one, console)))

    assert lines[0] == "Backward pass 4 took 500 ns: 3 runs of 2 nodes"


def test_segments_say_when_they_were_and_where_and_what_would_be_saved(shown):
    one = path(
        segment(0, 500),
        segment(
            500, 1_000, kind="stream", thread=-1, stream="sim:0/1", node=-1, name=""
        ),
    )

    lines = words(shown(lambda console: print_critical_path(one, console), width=100))

    assert "0 ns 500 ns 50% running 3 MulBackward0 0 MainThread" in lines
    assert "500 ns 500 ns 50% to and from a stream sim:0/1" in lines
    assert "3 MulBackward0 9 4 500 ns 600 ns 400 ns" in lines


def test_a_segment_of_a_pass_inside_of_this_one_says_of_which(shown):
    one = path(segment(0, 500), segment(500, 1_000, task=5, index=0))

    lines = words(shown(lambda console: print_critical_path(one, console), width=100))

    assert "after took part what # name pass where" in lines
    assert "500 ns 500 ns 50% running 0 MulBackward0 5 0 MainThread" in lines


def test_usual_times_are_shown_for_a_shape_of_several_passes(shown):
    one = path(segment(0, 1_000), num_alike=3)

    lines = words(shown(lambda console: print_critical_path(one, console), width=100))

    assert "3 MulBackward0 9 4 500 ns 450 ns 600 ns 400 ns" in lines
    assert lines[-1].endswith("the median of 3 passes of this shape")


def test_short_segments_between_long_ones_are_told_together(shown):
    long = [segment(1_000 * i, 1_000 * i + 990) for i in range(1, MAX_SEGMENTS + 1)]
    short = [segment(0, 1), segment(1, 2), segment(2, 3)]

    lines = words(
        shown(lambda console: print_critical_path(path(*short, *long), console))
    )

    assert [line for line in lines if "shorter" in line] == ["0 ns 3 ns 0% 3 shorter"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"status": "unfinished"}, "This is the path to the last recorded event."),
        ({"is_whole": False}, "Events are missing from the trace"),
    ],
)
def test_missing_parts_of_the_trace_are_reported(changes, said, shown):
    one = path(segment(0, 500), **changes)

    lines = shown(lambda console: print_critical_path(one, console), width=100)

    assert any(said in line for line in lines)


def test_of_several_workers_it_names_the_one_on_which_most_of_the_path_is(shown):
    several = path(
        segment(0, 200),
        segment(200, 300, kind="message", node=-1, name=""),
        segment(300, 1_000),
        workers={0: 200, 2: 700},
    )

    told = words(shown(lambda console: print_critical_path(several, console)))

    assert "Worker 2 holds it up most: 700 ns of the path (70%)" in told
    assert any("on its way to a worker" in line for line in told)


def test_of_one_worker_it_names_none(shown):
    one = path(segment(0, 200))

    told = words(shown(lambda console: print_critical_path(one, console)))

    assert not any("Worker" in line for line in told)
