import pytest

from gradviz.analysis.findings.check import check_trace
from gradviz.analysis.tables.outcomes import COMPLETED, FAILED, UNFINISHED, outcomes
from gradviz.analysis.tables.passes import MAX_PASSES, passes, select_task, the_pass
from gradviz.trace.reading.reader import parse_trace
from tests.analysis.sent_messages import sent
from tests.cli import bad_files

STATUSES = {"completed": COMPLETED, "unfinished": UNFINISHED, "failed": FAILED}
NUM_PASSES = MAX_PASSES + 10


def many(*blocks):
    """More passes than views tell of, one begun every nanosecond, and other events."""
    begun = bad_files.events(bad_files.many_begun(NUM_PASSES), *blocks)
    return parse_trace(bad_files.HEADER + begun + bad_files.CLOSED)


def agrees(trace):
    """Check that columns say of each pass what the pass itself says."""
    found = outcomes(trace)
    rows = zip(*(column.tolist() for column in found), strict=True)
    assert [*rows] == [
        (
            one.task,
            one.parent < 0,
            STATUSES[one.status],
            one.duration_ns is not None,
            one.duration_ns or 0,
        )
        for one in passes(trace)
    ]
    return True


def test_columns_say_of_each_pass_how_it_ended(story):
    root = story.node(1)
    story.begin(5, [root], at=0)
    story.end(5, at=5)
    story.begin(2, [root], at=10)
    story.begin(9, [root], at=12, parent=2)
    story.fail(9, root, "ValueError: no", at=14)

    found = outcomes(story.trace())

    assert found.task.tolist() == [5, 2, 9]
    assert found.status.tolist() == [COMPLETED, UNFINISHED, FAILED]
    assert found.duration_ns.tolist() == [5, 0, 3]
    assert agrees(story.trace())


def test_a_trace_without_passes_has_no_outcomes(story):
    assert len(outcomes(story.trace()).task) == 0


@pytest.mark.parametrize("ended", [(), (1,), (2,), (1, 2)])
def test_a_pass_of_two_workers_has_one_outcome(story, ended):
    root = story.node(1)
    story.begin(2, [root], at=0)
    story.begin(1, [root], at=3)
    sent(story, 4, 2, root.id, (0, 1, 8), pass_id=4)
    sent(story, 5, 1, root.id, (1, 0, 9), pass_id=4)
    for task in ended:
        story.end(task, at=10 + task)

    assert len(outcomes(story.trace()).task) == 1
    assert agrees(story.trace())


def test_a_pass_that_begins_twice_has_one_outcome():
    begun = bad_files.events(bad_files.many_begun(3))

    assert agrees(parse_trace(bad_files.HEADER + begun + begun + bad_files.CLOSED))


def test_of_very_many_passes_each_is_found():
    trace = many()

    assert the_pass(trace, NUM_PASSES - 1).task == NUM_PASSES - 1
    assert len(passes(trace)) == MAX_PASSES
    assert passes(trace, limit=2, tasks=[3, NUM_PASSES - 1, NUM_PASSES - 2]) == (
        the_pass(trace, 3),
        the_pass(trace, NUM_PASSES - 2),
    )


def test_last_slowest_and_failed_look_at_all_passes():
    late = NUM_PASSES - 3
    trace = many(
        bad_files.regular("task_completed", 1, (late + 100, 0), (late, 0), (-1, 0)),
        bad_files.regular(
            "task_failed", 1, (late + 9, 0), (late + 1, 0), (-1, 0), (0, 0)
        ),
    )

    assert select_task(trace, "last") == (NUM_PASSES - 1,)
    assert select_task(trace, "slowest") == (late,)
    assert select_task(trace, "failed") == (late + 1,)


def test_a_check_looks_at_all_passes():
    check = check_trace(many())

    assert (check.num_failed, check.num_unseen) == (NUM_PASSES, 0)
    assert [one.task for one in check.failed] == [*range(100)]
