"""Critical paths of data-parallel passes, over ranks."""

from gradviz.analysis.causes.critical_path import find_critical_path
from tests.analysis.ranks import rank_trace, ranks


def path_of(trace, task=1):
    """Return kind, name and pass of each segment, the first one first."""
    path = find_critical_path(trace, task)
    assert sum(one.took_ns for one in path.segments) == path.duration_ns
    return [(one.kind, one.name, one.task) for one in path.segments]


def test_the_path_goes_on_where_the_last_rank_began_the_collective():
    slow = rank_trace(1, took=55, spans=((85, 100),))
    path = path_of(ranks(rank_trace(0), slow))

    running = [(name, task) for kind, name, task in path if kind in RUNS]
    assert [name for name, _ in running] == ["MulBackward0", "AccumulateGrad"]
    assert all(task not in {-1, 1} for _, task in running)  # of the other rank
    kinds = [kind for kind, *_ in path]
    assert kinds[-2:] == ["collective", "engine"]


def test_the_path_of_the_last_rank_stays_there():
    slow = rank_trace(1, took=55, spans=((85, 100),))
    trace = ranks(rank_trace(0), slow)
    (other,) = {*trace.columns["task_begun"]["task"].tolist()} - {1}

    assert {task for kind, _, task in path_of(trace, other) if kind in RUNS} == {other}


def test_one_rank_alone_waits_for_its_collective():
    path = find_critical_path(rank_trace(0), 1)
    (reduced,) = [one for one in path.segments if one.kind == "collective"]

    assert (reduced.begin_ns, reduced.end_ns) == (60, 100)


def test_a_collective_that_ends_after_its_pass_holds_up_nothing():
    path = path_of(rank_trace(0, spans=((60, 300),), end=200))

    assert "collective" not in {kind for kind, *_ in path}


def test_a_rank_that_began_after_the_end_on_another_is_no_cause():
    early = rank_trace(0, spans=((60, 70),))
    path = path_of(ranks(early, rank_trace(1, spans=((85, 100),))))

    assert {task for kind, _, task in path if kind in RUNS} == {1}


#: Segments in which a node ran.
RUNS = {"running", "occupied"}
