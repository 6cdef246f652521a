import re

import pytest

from gradviz.ops.conventions.dimensions import kept_shape, varargs, wrap_dim, wrap_dims


def test_negative_dimensions_count_from_the_end():
    assert [wrap_dim(dim, 3) for dim in (0, 2, -1, -3)] == [0, 2, 2, 0]


def test_an_array_without_dimensions_counts_as_one_with_one():
    assert wrap_dim(-1, 0) == 0
    with pytest.raises(IndexError, match=r"range of \[-1, 0\], but got 1"):
        wrap_dim(1, 0)


def test_no_dimension_named_means_all():
    assert wrap_dims(None, 3) == wrap_dims((), 3) == (0, 1, 2)
    assert wrap_dims(0, 0) == wrap_dims(None, 0) == ()


def test_a_dimension_is_named_once():
    with pytest.raises(RuntimeError, match="dim 1 appears multiple times"):
        wrap_dims((1, -1), 2)


def test_reduced_dimensions_are_kept_with_length_1():
    assert kept_shape((2, 3, 4), (0, 2)) == (1, 3, 1)


def test_integers_come_one_by_one_or_together():
    def given(*arguments, named=None):
        return varargs("flip", "dims", arguments, named)

    assert given(1, 2) == given((1, 2)) == given(named=(1, 2)) == (1, 2)
    assert given(3) == given(named=3) == (3,)
    assert given(()) == ()


@pytest.mark.parametrize(
    ("arguments", "named", "message"),
    [
        ((), None, 'flip() missing 1 required positional arguments: "dims"'),
        ((1,), (1,), "flip() got multiple values for argument 'dims'"),
    ],
)
def test_integers_are_given_once(arguments, named, message):
    with pytest.raises(TypeError, match=re.escape(message)):
        varargs("flip", "dims", arguments, named)
