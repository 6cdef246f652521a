"""Collectives that were seen, and the buckets and nodes that they are matched with."""

import pytest

from gradviz.pytorch.nodes.data_parallel import BucketPlan, ProcessGroup
from gradviz.pytorch.reconstruction.seen_collectives import SeenCollective
from gradviz.trace.events import CollectiveBegan, CollectiveEnded, GradientBucketed
from tests.pytorch.conftest import graph, leaf, node

#: A thread of the backend.
GLOO = 77


class Parameter:
    def numel(self):
        return 2

    def element_size(self):
        return 4


@pytest.fixture
def model():
    """A root with two leaves, of which the second runs first, a bucket for each."""
    leaves, parameters = [leaf(), leaf()], [Parameter(), Parameter()]
    for one, parameter in zip(leaves, parameters, strict=True):
        one.variable = lambda parameter=parameter: parameter
    buckets = [[parameters[0]], [parameters[1]]]
    group = ProcessGroup("7", 1, 2)
    return node("A", 5, *leaves), leaves, BucketPlan("Net", group, buckets, True, False)


def reduced(*spans, name="gloo:all_reduce"):
    return [SeenCollective(begin, end, name, GLOO) for begin, end in spans]


def told(pytorch, model, collectives):
    root, (first, second), plan = model
    pytorch.begin(graph(root), 100, 90_000_000)
    pytorch.saw(
        (root, 1_000, 2_000),
        (first, 3_000, 4_000),
        (second, 5_000, 6_000),
        collectives=collectives,
        plans=[plan],
    )
    return pytorch.events(CollectiveBegan, CollectiveEnded, GradientBucketed)


def test_the_nth_all_reduce_is_of_the_nth_bucket_that_was_ready(pytorch, model):
    _, (first, second), _ = model
    events = told(pytorch, model, reduced((100_000, 200_000), (300_000, 400_000)))

    began = [one for one in events if isinstance(one, CollectiveBegan)]
    assert [(one.bucket, one.node) for one in began] == [(0, first.id), (1, second.id)]
    assert {(one.group, one.rank, one.size_bytes) for one in began} == {("7", 1, 8)}
    filled = [one for one in events if isinstance(one, GradientBucketed)]
    assert [(one.bucket, one.node) for one in filled] == [(0, first.id), (1, second.id)]
    assert all(one.inferred for one in filled)


def test_a_collective_that_seems_to_begin_before_its_launch_begins_with_it(
    pytorch, model
):
    events = told(pytorch, model, reduced((3_990, 200_000), (300_000, 400_000)))

    began = [one for one in events if isinstance(one, CollectiveBegan)]
    filled = [one for one in events if isinstance(one, GradientBucketed)]
    assert began[0].bucket == 0
    assert began[0].t_ns == filled[0].t_ns


@pytest.mark.parametrize(
    "collectives",
    [
        reduced((100_000, 200_000)),
        reduced((100_000, 200_000), (300_000, 400_000), (500_000, 600_000)),
        reduced((100_000, 200_000), (300_000, 400_000), name="gloo:all_gather"),
    ],
    ids=["too few", "too many", "no all-reduce"],
)
def test_collectives_that_do_not_match_the_buckets_belong_to_none(
    pytorch, model, collectives
):
    events = told(pytorch, model, collectives)

    assert not [one for one in events if isinstance(one, GradientBucketed)]
    began = [one for one in events if isinstance(one, CollectiveBegan)]
    known = {(one.bucket, one.size_bytes, one.group) for one in began}
    assert known == {(None, None, "")}


def test_one_of_no_bucket_has_the_node_that_began_last_before_it(pytorch, model):
    root, (_, second), _ = model
    seen = reduced((2_500, 2_600), (7_000, 8_000), name="gloo:all_gather")
    events = told(pytorch, model, seen)

    began = [one for one in events if isinstance(one, CollectiveBegan)]
    assert [one.node for one in began] == [root.id, second.id]


def test_collectives_outside_of_all_passes_are_left_out(pytorch, model):
    assert not told(pytorch, model, reduced((10, 20), (91_000_000, 92_000_000)))
