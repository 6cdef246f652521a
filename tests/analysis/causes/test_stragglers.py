"""Exposed time of collectives, and the ranks that others waited for."""

import json

from gradviz.analysis.causes.stragglers import document_of, find_collectives
from tests.analysis.ranks import rank_trace, ranks


def test_a_collective_is_exposed_where_no_node_of_its_process_runs():
    trace = rank_trace(0, took=60, spans=((30, 100),))  # the nodes run until 75
    (one,) = find_collectives(trace).collectives

    (rank,) = one.ranks
    assert rank.ended_ns - rank.began_ns == 70
    assert rank.exposed_ns == 27  # from 70 to 72, between two nodes, and from 75


def test_nodes_of_another_rank_cover_nothing():
    trace = ranks(
        rank_trace(0, took=20, spans=((60, 100),)),
        rank_trace(1, took=60, spans=((90, 100),)),
    )
    (one,) = find_collectives(trace).collectives

    assert [rank.exposed_ns for rank in one.ranks] == [40, 10]


def test_exposed_time_is_unknown_without_nodes(story):
    story.recorder.collective_began(-1, -1, 1, "gloo:barrier", "", 0, 2, -1, "", -1)
    story.now += 5
    story.recorder.collective_ended(-1, -1, 1)
    use = find_collectives(story.trace())

    assert use.collectives[0].ranks[0].exposed_ns is None
    assert use.ranks[0].exposed_ns is None


def test_a_collective_without_end_has_no_exposed_time():
    (one,) = find_collectives(rank_trace(0, spans=((60,),))).collectives

    assert one.ranks[0].ended_ns is None
    assert one.ranks[0].exposed_ns is None


def test_the_straggler_launched_last_and_its_longest_delay_is_to_blame():
    trace = ranks(
        rank_trace(0, took=20, spans=((60, 100),)),
        rank_trace(1, took=55, spans=((85, 100),)),
    )
    (one,) = find_collectives(trace).collectives

    late = one.straggler
    assert (late.rank, late.late_ns) == (1, 35)
    assert (late.cause, late.name, late.longer_ns) == ("node", "MulBackward0", 35)
    assert late.index == 0


def test_a_thread_of_the_backend_that_wakes_up_late_makes_no_straggler():
    trace = ranks(
        rank_trace(0, took=20, spans=((95, 100),)),
        rank_trace(1, took=55, spans=((85, 100),)),
    )
    (one,) = find_collectives(trace).collectives

    first, second = one.ranks
    assert second.launched_ns - first.launched_ns == 35
    assert (one.straggler.rank, one.straggler.late_ns) == (1, 35)


def test_without_known_launches_the_straggler_began_last():
    trace = ranks(
        rank_trace(0, took=20, spans=((95, 100),)),
        rank_trace(1, took=55, spans=((85, 100),), has_buckets=False),
    )
    (one,) = find_collectives(trace).collectives

    assert one.ranks[0].launched_ns is not None
    assert one.ranks[1].launched_ns is None
    assert (one.straggler.rank, one.straggler.late_ns) == (0, 10)


def test_a_pass_that_began_late_is_to_blame_itself():
    trace = ranks(
        rank_trace(0, spans=((60, 100),)),
        rank_trace(1, begin=40, spans=((95, 100),)),
    )
    (one,) = find_collectives(trace).collectives

    late = one.straggler
    assert (late.rank, late.cause, late.longer_ns) == (1, "begin", 40)
    assert late.node is None


def test_one_rank_alone_has_no_straggler():
    (one,) = find_collectives(rank_trace(0)).collectives

    assert one.straggler is None


def test_totals_count_time_once_and_late_ranks():
    spans = ((60, 100), (70, 120))
    traces = rank_trace(0, spans=spans), rank_trace(1, took=30, spans=spans)
    use = find_collectives(ranks(*traces))

    first, second = use.ranks
    assert (first.rank, first.num_collectives, first.took_ns) == (0, 2, 60)
    assert (first.num_last, first.late_ns) == (0, 0)
    assert (second.rank, second.num_last, second.late_ns) == (1, 2, 20)


def test_the_document_says_null_for_what_is_unknown(story):
    story.recorder.collective_began(-1, -1, 1, "gloo:barrier", "", -1, -1, -1, "", -1)
    document = json.loads(json.dumps(document_of(find_collectives(story.trace()))))

    (one,) = document["collectives"]
    assert document["schema"] == "gradviz.collectives"
    for name in ("group", "world_size", "model", "bucket", "size_bytes", "straggler"):
        assert one[name] is None
    for name in ("rank", "task", "node", "index", "name", "ended_ns", "exposed_ns"):
        assert one["ranks"][0][name] is None
