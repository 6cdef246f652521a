"""Events of nodes, joined to the nodes that were started."""

import random

import numpy as np
import pytest

from gradviz.analysis.tables.executions import (
    _Ids,
    _Numbers,
    _PassRows,
    _Runs,
    _StartedRows,
)
from gradviz.trace.format.table import Table, narrow

FAR = 2**63 - 1


def rows(*pairs):
    """The events of some tasks and nodes, each at its place."""
    task, node = np.array(pairs, np.int64).reshape(-1, 2).T
    place = np.arange(len(task))
    columns = {"task": task, "node": node, "seq": place, "thread": place, "t_ns": place}
    return Table({name: narrow(column) for name, column in columns.items()})


def pass_rows(table):
    return _PassRows(*map(table.narrow, _PassRows._fields))


@pytest.mark.parametrize(
    "known", [[], [7], [9, 5, 6, 5], [-FAR - 1, -FAR + 1], [0, FAR], [-FAR - 1, FAR]]
)
@pytest.mark.parametrize("asked", [[], [-1, 0, 4, 5, 6, 7, 9, 10, FAR, -FAR - 1]])
def test_each_id_has_a_place_of_its_own(known, asked):
    ids = _Ids(narrow(np.array(known, np.int64)))

    places = ids.places(narrow(np.array([*known, *asked], np.int64))).tolist()

    by_id = dict(zip([*known, *asked], places, strict=True))
    own = {by_id[one] for one in known}
    assert len(own) == len(set(known))
    assert all(0 <= place < ids.size for place in own)
    assert all(by_id[one] not in own for one in {*asked} - {*known})
    assert all(-1 <= by_id[one] < ids.size for one in asked)


@pytest.mark.parametrize("seed", range(20))
def test_of_several_events_of_a_node_the_last_counts(seed):
    rng = random.Random(seed)
    ids = rng.choice([range(4), [-1, 3, 8], [-FAR - 1, 0, FAR]])
    began = [(rng.choice(ids), rng.choice(ids)) for _ in range(rng.randrange(9))]
    events = [(rng.choice(ids), rng.randrange(-2, 5)) for _ in range(rng.randrange(20))]
    started = pass_rows(rows(*began))
    number = _Numbers(started)
    runs = _Runs(_StartedRows(started, number(started), started.seq < 0, number))

    (t_ns,), found = runs.last(rows(*events), ["t_ns"])

    last = {pair: place for place, pair in enumerate(events)}
    assert found.tolist() == [pair in last for pair in began]
    assert t_ns.tolist() == [last.get(pair, 0) for pair in began]
