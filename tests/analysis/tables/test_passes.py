import pytest

from gradviz.analysis.tables.passes import (
    NoSuchPassError,
    passes,
    select_task,
    with_descendants,
)
from gradviz.errors import UserError


@pytest.fixture
def nested(story):
    """Pass 1, then pass 2 with pass 3 inside it."""
    root = story.node(1)
    story.begin(1, [root], at=0)
    story.end(1, at=5)
    story.begin(2, [root], at=10)
    story.begin(3, [root], at=12, parent=2)
    story.end(3, at=14)
    story.end(2, at=20)
    return story


def test_passes_come_in_the_order_in_which_they_began(nested):
    found = passes(nested.trace())

    assert [one.task for one in found] == [1, 2, 3]
    assert [(one.begin_ns, one.end_ns) for one in found] == [
        (1_000, 1_005),
        (1_010, 1_020),
        (1_012, 1_014),
    ]
    assert [(one.parent, one.depth) for one in found] == [(-1, 0), (-1, 0), (2, 1)]


def test_a_failed_pass_has_its_error(story):
    root = story.node(1)
    story.begin(4, [root], at=0)
    story.fail(4, root, "ValueError: no", at=3)

    (one,) = passes(story.trace())

    assert (one.status, one.error, one.end_ns) == ("failed", "ValueError: no", 1_004)


def test_a_pass_without_an_end_is_unfinished(story):
    story.begin(4, [story.node(1)], at=0)

    (one,) = passes(story.trace())

    assert (one.status, one.end_ns) == ("unfinished", None)


def test_last_is_the_last_pass_that_no_other_called(nested):
    assert select_task(nested.trace(), "last") == (2,)


def test_all_is_every_pass(nested):
    assert select_task(nested.trace(), "all") == (1, 2, 3)


@pytest.mark.parametrize("which", [3, "3"])
def test_a_number_is_that_pass(nested, which):
    assert select_task(nested.trace(), which) == (3,)


@pytest.mark.parametrize(
    ("which", "tasks"),
    [("1-2", (1, 2)), ("2-9", (2, 3)), ("3,1", (1, 3)), ("1, 3-3", (1, 3))],
)
def test_ranges_are_the_passes_in_them(nested, which, tasks):
    assert select_task(nested.trace(), which) == tasks


def test_slowest_is_the_longest_that_no_other_called(nested):
    assert select_task(nested.trace(), "slowest") == (2,)


def test_failed_is_every_pass_that_failed(nested):
    root = nested.node(9)
    for task in (5, 6):
        nested.begin(task, [root], at=10 * task)
        nested.fail(task, root, "ValueError: no", at=10 * task + 1)

    assert select_task(nested.trace(), "failed") == (5, 6)


def test_a_trace_without_a_failed_pass_refuses_to_select_one(nested):
    with pytest.raises(UserError, match=r"no backward pass of the trace failed"):
        select_task(nested.trace(), "failed")


@pytest.mark.parametrize(
    "which",
    ["9", 9, "first", "-1", "²", "3-1", "7-8", "1-", "1,,2", "1-2-3", "9" * 40, ""],
)
def test_an_unknown_pass_is_refused_with_those_there_are(nested, which):
    with pytest.raises(NoSuchPassError, match=r"there are 1, 2, 3"):
        select_task(nested.trace(), which)


def test_many_passes_are_named_by_their_range(story):
    root = story.node(1)
    for task in range(20):
        story.begin(task, [root], at=task)

    with pytest.raises(UserError, match=r"there are 20, from 0 to 19"):
        select_task(story.trace(), 99)


def test_a_trace_without_a_backward_is_a_clear_sentence(story):
    with pytest.raises(UserError, match=r"holds no backward pass: record a program"):
        select_task(story.trace(), "last")


def test_passes_called_from_inside_come_with_their_callers(nested):
    trace = nested.trace()

    assert with_descendants(trace, [2]) == (2, 3)
    assert with_descendants(trace, [1]) == (1,)
