"""Traces of data-parallel ranks, merged."""

from gradviz.trace.events import CollectiveBegan, CollectiveEnded
from tests.analysis.conftest import START_NS, Story
from tests.trace.merging.test_merged_file import merge, of

#: When a collective begins and ends; without end, it goes on.
DEFAULT = ((60, 100),)


def rank_trace(
    rank,
    *,
    begin=0,
    took=20,
    spans=DEFAULT,
    world_size=2,
    group="0",
    end=200,
    has_buckets=True,
):
    """A pass of a Mul that takes `took`, and its leaf; a bucket for each collective."""
    story = Story()
    leaf = story.node(1, name="AccumulateGrad")
    root = story.node(2, leaf)
    story.begin(1, [root, leaf], at=begin)
    story.ran(1, root, at=begin + 10, until=begin + 10 + took)
    story.ran(1, leaf, at=begin + 12 + took, until=begin + 15 + took)
    for bucket in range(len(spans) if has_buckets else 0):
        story.recorder.gradient_bucketed(1, leaf.id, "Net", bucket, 8)

    for number, (begin_ns, *end_ns) in enumerate(spans):
        about = 1, leaf.id, number
        whole = "gloo:all_reduce", group, rank, world_size, 8, "Net", number
        rows = {CollectiveBegan: [START_NS + begin_ns, *about, *whole]}
        if end_ns:
            rows[CollectiveEnded] = [START_NS + end_ns[0], *about]
        story.recorder.rows_reported(1 + number % 2, "gloo", rows)
    story.end(1, at=end)
    return story.trace()


def ranks(*traces):
    """Return one trace of several ranks of one machine."""
    clock = traces[0].clocks
    return merge(
        *(
            of(one, clocks=clock, pid=10 + rank, recording=rank, boot_id="same")
            for rank, one in enumerate(traces)
        )
    )
