import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradviz.analysis.races.byte_ranges import covers, overlap, parse_extent, whole

MATRIX = "0;2,3;24,8;8"
FIRST_ROW, SECOND_ROW = "0;3;8;8", "24;3;8;8"
COLUMNS = ["0;2;24;8", "8;2;24;8", "16;2;24;8"]


def bytes_of(layout):
    """Every byte of an array, counted out."""
    offset, shape, strides, itemsize = layout
    return {
        offset + sum(i * step for i, step in zip(place, strides, strict=True)) + byte
        for place in itertools.product(*map(range, shape))
        for byte in range(itemsize)
    }


def text(layout):
    offset, shape, strides, itemsize = layout
    lengths, steps = ",".join(map(str, shape)), ",".join(map(str, strides))
    return f"{offset};{lengths};{steps};{itemsize}"


@st.composite
def layouts(draw):
    rank = draw(st.integers(0, 3))
    shape = tuple(draw(st.integers(0, 3)) for _ in range(rank))
    strides = tuple(draw(st.integers(-12, 12)) for _ in range(rank))
    return draw(st.integers(60, 80)), shape, strides, draw(st.integers(1, 4))


@given(layouts(), layouts())
def test_two_arrays_overlap_if_a_byte_belongs_to_both(one, other):
    shared = bytes_of(one) & bytes_of(other)

    assert overlap(parse_extent(text(one)), parse_extent(text(other))) == bool(shared)


@given(layouts(), layouts())
def test_an_array_that_covers_another_has_all_of_its_bytes(one, other):
    if covers(parse_extent(text(one)), parse_extent(text(other))):
        assert bytes_of(one) >= bytes_of(other)


@given(layouts())
def test_the_bounds_of_an_array_are_its_first_and_last_byte(layout):
    extent, held = parse_extent(text(layout)), bytes_of(layout)

    if held:
        assert (extent.low, extent.high) == (min(held), max(held) + 1)
        assert not extent.is_dense or len(held) == extent.high - extent.low
    else:
        assert extent.low == extent.high


def test_rows_of_a_matrix_are_apart():
    assert not overlap(parse_extent(FIRST_ROW), parse_extent(SECOND_ROW))


@pytest.mark.parametrize(("one", "other"), [*itertools.combinations(COLUMNS, 2)])
def test_columns_of_a_matrix_are_apart_although_their_bounds_overlap(one, other):
    assert not overlap(parse_extent(one), parse_extent(other))


@pytest.mark.parametrize("part", [FIRST_ROW, SECOND_ROW, *COLUMNS])
def test_a_matrix_covers_its_rows_and_columns(part):
    assert covers(parse_extent(MATRIX), parse_extent(part))
    assert overlap(parse_extent(MATRIX), parse_extent(part))


def test_a_column_does_not_cover_the_matrix():
    assert not covers(parse_extent(COLUMNS[0]), parse_extent(MATRIX))


def test_an_allocation_is_all_of_its_bytes():
    assert covers(whole(48), parse_extent(MATRIX))
    assert not covers(whole(40), parse_extent(MATRIX))


def test_a_transposed_matrix_covers_the_matrix():
    assert covers(parse_extent("0;3,2;8,24;8"), parse_extent(MATRIX))


@pytest.mark.parametrize("layout", ["", "(lost)", "0;2;8", "0;x;8;8", "0;2,3;8;8"])
def test_a_text_that_is_no_layout_is_parsed_as_none(layout):
    assert parse_extent(layout) is None


def test_arrays_whose_overlap_is_too_hard_to_tell_are_taken_to_overlap():
    strides = ",".join(str(8 * 3**n) for n in range(20))
    many = f"0;{','.join(['2'] * 20)};{strides};8"
    other = f"4;{','.join(['2'] * 20)};{strides};4"

    assert overlap(parse_extent(many), parse_extent(other))


def test_a_layout_larger_than_any_memory_is_taken_to_overlap():
    huge = f"0;{2**62},{2**62};8,{2**61};8"

    assert overlap(parse_extent(huge), parse_extent("16;3;9;8"))
