from gradviz.trace.events import KINDS, own_columns
from gradviz.trace.merging.identities import IDENTITIES, MOMENTS, PLACES

#: All other columns of integers.
QUANTITIES = frozenset(
    {
        "bucket",
        "context",
        "depth",
        "device",
        "index",
        "input_nr",
        "message",
        "num_edges",
        "num_graphs",
        "num_nodes",
        "num_outputs",
        "num_passes",
        "num_roots",
        "num_threads",
        "outstanding",
        "output_index",
        "owner",
        "pass_id",
        "peer",
        "peer_ns",
        "queue_length",
        "parameter_bytes",
        "rank",
        "reentrant_depth",
        "remaining",
        "round_trip_ns",
        "sequence_nr",
        "shared_bytes",
        "size_bytes",
        "step",
        "thread_time_ns",
        "waited_ns",
        "worker",
        "world_size",
    }
)


def test_of_every_column_of_numbers_it_is_said_what_they_stand_for():
    """A new column must declare its meaning, because merging depends on it."""
    numbers = {
        one.name
        for kind in KINDS.values()
        for one in own_columns(kind)
        if one.type is int
    }

    assert numbers <= IDENTITIES.keys() | MOMENTS | QUANTITIES
    assert numbers >= QUANTITIES
    assert not QUANTITIES & IDENTITIES.keys()


def test_every_column_of_texts_that_names_a_stream_is_known():
    texts = {
        one.name
        for kind in KINDS.values()
        for one in own_columns(kind)
        if one.type is str
    }

    assert texts >= PLACES
    assert {name for name in texts if "stream" in name} <= PLACES
