import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gradviz.analysis.tables.spans import NEVER, Spans, following, in_order, spans
from gradviz.trace.format.table import Table

#: Ids that lie close together, and such as only a damaged file has.
IDS = st.integers(-2, 1), st.sampled_from((-(1 << 62), 0, 1, 1 << 62))

#: What happens one after the other: something of a key begins, or ends.
HAPPENINGS = st.one_of(
    st.lists(st.tuples(st.booleans(), st.integers(0, 3), ids), max_size=60)
    for ids in IDS
)


def tables(happenings):
    return tuple(
        Table(
            {
                name: np.array(
                    [row[i] for row in enumerate_rows(happenings) if row[0] is begins],
                    np.int64,
                )
                for i, name in ((1, "seq"), (2, "task"), (3, "node"))
            }
        )
        for begins in (True, False)
    )


def enumerate_rows(happenings):
    return [(begins, seq, *key) for seq, (begins, *key) in enumerate(happenings)]


@given(HAPPENINGS)
def test_an_end_is_of_the_first_of_its_key_that_has_begun_and_not_ended(happenings):
    begins, ends = tables(happenings)

    found = spans(begins, ends, ("task", "node"))

    expected, begun = {}, {}
    for begin, seq, *key in enumerate_rows(happenings):
        still_open = begun.setdefault(tuple(key), [])
        if begin:
            still_open.append(seq)
            expected[seq] = NEVER
        elif still_open:
            expected[still_open.pop(0)] = seq
    assert dict(zip(found.begin.tolist(), found.end.tolist(), strict=True)) == expected


def test_something_is_open_from_its_first_event_to_the_one_before_its_last():
    one = Spans(
        Table({"seq": np.array([2, 4])}), np.array([2, 4]), np.array([6, NEVER])
    )

    opened = [one.open_at(seq).tolist() for seq in range(8)]

    assert opened == [[], [], [0], [0], [0, 1], [0, 1], [1], [1]]


@given(HAPPENINGS)
def test_each_start_is_followed_by_the_next_end_of_the_same_key(happenings):
    begins, ends = tables(happenings)

    places = following(begins, ends, ("task", "node")).tolist()

    rows = enumerate_rows(happenings)
    for (_, seq, *key), place in zip(
        (row for row in rows if row[0]), places, strict=True
    ):
        later = [at for has, at, *one in rows if not has and one == key and at > seq]
        assert (int(ends["seq"][place]) if place >= 0 else None) == (
            later[0] if later else None
        )


def test_rows_of_several_kinds_are_put_in_order():
    one = Table({"seq": np.array([1, 4]), "task": np.array([7, 8])})
    other = Table({"task": np.array([9]), "how": np.array([0]), "seq": np.array([2])})

    joined = in_order(one, other)

    assert list(joined) == ["seq", "task"]
    assert list(joined.rows("seq", "task")) == [(1, 7), (2, 9), (4, 8)]
