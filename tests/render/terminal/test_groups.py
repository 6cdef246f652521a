import pytest

from gradviz.analysis.nodes.groups import Groups, NodeGroup
from gradviz.render.terminal.groups import print_groups


def groups(*labels, **changes):
    fields = {
        "by": "module",
        "sort": "total",
        "tasks": None,
        "num_runs": 12,
        "total_ns": 8_000,
        "omitted": 0,
        "num_unfinished": 0,
        "is_complete": True,
        "groups": tuple(
            NodeGroup(
                label=label,
                runs=3,
                total_ns=2_000,
                mean_ns=666.6,
                median_ns=500,
                p90_ns=900,
                longest_ns=950,
            )
            for label in labels
        ),
    }
    return Groups(**(fields | changes))


def test_a_group_is_a_row_with_its_share(shown):
    lines = shown(lambda console: print_groups(groups("Net.a", ""), console))

    assert lines[0] == "By module: 12 runs, 8 µs together"
    assert lines[1].split() == [
        *("module", "runs", "total", "share", "mean", "median", "p90", "longest")
    ]
    assert lines[2].split() == [
        *("Net.a", "3", "2", "µs", "25%", "667", "ns"),
        *("500", "ns", "900", "ns", "950", "ns"),
    ]
    assert lines[3].split()[0] == "-"


def test_omitted_groups_runs_and_events_are_reported(shown):
    some = groups("a", omitted=4, num_unfinished=2, is_complete=False)
    lines = shown(lambda console: print_groups(some, console))

    assert lines[0].endswith("(1 of 5 groups)")
    assert lines[-2] == "2 runs without an end not counted"
    assert lines[-1].startswith("events are missing")


@pytest.mark.parametrize("by", ["name", "module", "line", "device"])
def test_hostile_labels_are_shown_and_do_nothing(shown, hostile, by):
    lines = shown(lambda console: print_groups(groups(hostile, by=by), console))

    assert len(lines) == 3
    assert all(line.isprintable() for line in lines)
