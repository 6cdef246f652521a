from functools import partial

import numpy as np

from gradviz.export.timeline.fields import joined, numbers, repeated, texts, where
from gradviz.export.timeline.protobuf import fixed64, integer, message, text

VALUES = [0, 1, 127, 128, 300, 2**31, 2**62, 2**63 - 1, -1, -(2**63)]


def test_numbers_of_every_size_are_those_of_single_messages():
    values = np.array(VALUES, np.int64)

    assert joined([numbers(partial(integer, 11), values)]) == [
        integer(11, value) for value in VALUES
    ]


def test_the_size_of_a_message_around_a_number_depends_on_the_number():
    def inside(value):
        return message(4, text(10, "key"), integer(4, value))

    found = joined([numbers(inside, np.array(VALUES, np.int64))])

    assert found == [inside(value) for value in VALUES]


def test_parts_are_joined_row_by_row():
    known, places = ["b", "", "é" * 100], np.array([2, 0, 0, 1])
    has = np.array([True, False, True, True])
    flows, many = np.array([7, 2**63 - 1, 9]), np.array([0, 2, 0, 1])
    parts = [
        texts(partial(text, 23), known, places),
        where(has, numbers(partial(integer, 1), np.arange(4))),
        repeated(partial(fixed64, 47), flows, many),
    ]

    assert joined(parts) == [
        text(23, "é" * 100) + integer(1, 0),
        text(23, "b") + fixed64(47, 7) + fixed64(47, 2**63 - 1),
        text(23, "b") + integer(1, 2),
        text(23, "") + integer(1, 3) + fixed64(47, 9),
    ]


def test_no_rows_make_no_messages():
    nothing = np.empty(0, np.int64)

    assert joined([numbers(partial(integer, 1), nothing)]) == []
    assert joined([texts(partial(text, 1), ["a"], nothing)]) == []
