"""Rows that are read block by block, put together to the columns of a trace."""

import numpy as np
import pytest

from gradviz.trace.events import HookCalled, Mark, NodeStarted, TaskCompleted
from gradviz.trace.format.frames import Budget, DamageError
from gradviz.trace.format.model import LOST_TEXT
from gradviz.trace.probe import Hook
from gradviz.trace.reading import assembly
from gradviz.trace.reading.assembly import GatheredRows, Texts, known_rows, merge

TEXTS = Texts({3: "c", 0: "a"})


def block(*rows):
    """Rows of t_ns, task, node and whatever else, as they are written."""
    return np.array(rows, np.int64).T


def gathered(kind, *blocks):
    """Each block with its thread."""
    rows = GatheredRows(kind)
    for thread, one in blocks:
        rows.add(thread, one, Budget(0))
    return rows


class TestTexts:
    def test_each_stands_where_its_index_says(self):
        assert TEXTS.all == ("a", "c", LOST_TEXT)
        assert [TEXTS[index] for index in (0, 3, 1)] == ["a", "c", LOST_TEXT]
        places = TEXTS.positions(np.array([3, 0, -1, 1, 9, 3]))
        assert places.tolist() == [1, 0, 2, 2, 2, 1]

    def test_without_definitions_all_are_lost(self):
        none = Texts({})

        places = none.positions(np.array([0, 5]))

        assert [none.all[place] for place in places] == [LOST_TEXT] * 2


class TestGathering:
    @pytest.mark.parametrize("many", [1, 4, 1_000], ids=lambda many: f"many is {many}")
    @pytest.mark.parametrize("waiting", [1, 50, 1_000])
    def test_all_rows_are_kept_in_their_order(self, monkeypatch, many, waiting):
        monkeypatch.setattr(assembly, "_MANY_ROWS", many)
        monkeypatch.setattr(assembly, "_MAX_WAITING", waiting)
        first = block((10, 0, 1), (11, 0, 2), (12, 0, 3))

        rows = gathered(TaskCompleted, (5, first), (6, block((13, 1, 4))))
        assert rows.has_any
        columns = rows.columns()

        names = ("thread", "t_ns", "node")
        assert [*zip(*(columns[name].tolist() for name in names), strict=True)] == [
            (5, 10, 1),
            (5, 11, 2),
            (5, 12, 3),
            (6, 13, 4),
        ]
        assert not rows.has_any

    def test_without_rows_there_are_none(self):
        rows = GatheredRows(TaskCompleted)

        assert not rows.has_any
        assert all(len(column) == 0 for column in rows.columns().values())

    def test_the_memory_of_gathered_rows_counts_against_the_budget_of_the_file(
        self, monkeypatch
    ):
        monkeypatch.setattr(assembly, "_MAX_WAITING", 9 + 2 * assembly._ARRAY)
        kept = []

        class Watching(Budget):
            def keep(self, size):
                kept.append(size)

        rows = GatheredRows(TaskCompleted)
        for num_rows in (1, 2):
            rows.add(5, np.ones((3, num_rows), np.int64), Watching(0))

        seq = assembly._SEQ_BYTES
        # Then they are columns of a byte: three, the thread, and if it is inferred.
        assert kept == [8 * 3 + seq, 2 * (8 * 3 + seq), 3 * (5 - 8 * 3)]


class TestKnownRows:
    def test_rows_without_the_columns_of_every_event_are_damage(self):
        with pytest.raises(DamageError, match="rows of node_started are too short"):
            known_rows(NodeStarted, block((1, 2)))

    def test_columns_of_a_later_version_go_and_those_of_an_earlier_one_are_zero(self):
        assert known_rows(NodeStarted, block((1, 2, 3, 9))).tolist() == [[1], [2], [3]]
        marks = known_rows(Mark, block((1, 2, 3)))
        assert marks.tolist() == [[1], [2], [3], [0]]

    def test_rows_with_a_member_that_an_enum_does_not_have_go(self):
        members = [one.value for one in Hook]
        numbers = [-(2**63), -1, *range(max(members) + 3), 99, 2**63 - 1]
        many = block(*((t_ns, 0, 0, one, 5) for t_ns, one in enumerate(numbers)))

        rows = known_rows(HookCalled, many)

        assert rows[3].tolist() == sorted(members)


class TestMerging:
    def test_events_are_placed_by_time_and_then_by_thread(self):
        some = {
            NodeStarted: gathered(
                NodeStarted, (1, block((30, 0, 1), (10, 0, 2))), (0, block((20, 0, 3)))
            ),
            Mark: gathered(Mark, (0, block((10, -1, -1, 3), (40, -1, -1, 7)))),
        }

        columns = merge(some, TEXTS)

        started, marks = columns["node_started"], columns["mark"]
        assert marks["seq"].tolist() == [0, 4]
        assert [TEXTS.all[place] for place in marks["text"]] == ["c", LOST_TEXT]
        assert started["seq"].tolist() == [1, 2, 3]
        assert started["node"].tolist() == [2, 3, 1]
        assert started["thread"].tolist() == [1, 0, 1]
        assert columns["task_begun"].num_rows == 0
        assert not started.narrow("node").flags.writeable
