import pytest

from gradviz.analysis.changes.node_changes import pass_changes
from gradviz.trace.reading.reader import load_trace
from tests.analysis.conftest import Story


def passes_that_take(tmp_path, *took_ns):
    """A trace of passes of a node that takes so long in each of them."""
    story = Story()
    for task, duration_ns in enumerate(took_ns):
        node, at = story.node(task), 1_000_000 * task
        story.begin(task, [node], at=at)
        story.ran(task, node, at=at + 10, until=at + 10 + duration_ns)
        story.end(task, at=at + 20 + duration_ns)
    path = tmp_path / f"{took_ns}.gvt"
    path.write_bytes(story.contents())
    return load_trace(path)


def kinds_of(one, other):
    changes = pass_changes(one, one.tasks[-1], other, other.tasks[-1])
    (node,) = changes.nodes
    return node.kinds, changes.is_by_chance


@pytest.mark.parametrize(
    ("before", "after", "kinds"),
    [
        ([1_000], [5_000], ("slower",)),
        ([5_000], [1_000], ("faster",)),
        ([1_000], [1_500], ("same",)),
    ],
)
def test_of_single_passes_a_large_difference_is_told_and_may_be_chance(
    tmp_path, before, after, kinds
) -> None:
    one, other = (passes_that_take(tmp_path, *took) for took in (before, after))

    assert kinds_of(one, other) == (kinds, True)


def test_of_several_passes_what_is_significant_is_told(tmp_path) -> None:
    one = passes_that_take(tmp_path, *[1_000] * 4)
    other = passes_that_take(tmp_path, *[1_300] * 4)
    noisy = passes_that_take(tmp_path, 1_000, 9_000, 2_000, 7_000)

    assert kinds_of(one, other) == (("slower",), False)
    assert kinds_of(one, noisy) == (("same",), False)
