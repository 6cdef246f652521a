import pytest

from gradviz.render.terminal.cells import share
from gradviz.render.terminal.row_printer import BLOCK, LEAST, fitted, print_rows


def table(shown, names, rows, width=80, **more):
    return shown(lambda console: print_rows(console, names, rows, **more), width)


def test_numbers_are_to_the_right_and_texts_to_the_left(shown):
    lines = table(shown, ["#", "name", "took"], [["1", "Mul", "5"], ["10", "A", "77"]])

    assert lines == [" #  name  took", " 1  Mul      5", "10  A       77"]


def test_a_table_without_rows_is_its_head(shown):
    assert table(shown, ["#", "name"], []) == ["#  name"]


def test_a_text_that_is_too_long_is_cut_and_a_number_is_not(shown):
    (_, line) = table(shown, ["#", "name"], [["12345", "x" * 90]], width=20)

    assert line == "12345  " + "x" * 12 + "…"


def test_of_a_path_that_is_too_long_the_end_stays(shown):
    (_, line) = table(shown, ["module"], [["Net.encoder.layers.0.数"]], width=12)

    assert line == "…layers.0.数"


def test_characters_that_take_two_columns_keep_the_table_straight(shown):
    lines = table(shown, ["name", "#"], [["数数", "1"], ["ab", "2"]])

    assert lines == ["name  #", "数数  1", "ab    2"]


def test_rows_are_written_before_the_last_one_is_made(shown):
    written = []

    def view(console):
        def rows():
            yield from ([str(number)] for number in range(BLOCK))
            written.append(console.file.getvalue().count("\n"))
            yield ["last"]

        print_rows(console, ["#"], rows())

    lines = shown(view)

    assert written == [BLOCK + 1]
    assert len(lines) == BLOCK + 2


def test_a_column_whose_width_is_told_never_moves(shown):
    rows = ([str(number)] for number in range(BLOCK + 1))

    lines = table(shown, ["#"], rows, widest={"#": 4})

    assert {len(line) for line in lines} == {4}


def test_rows_that_alarm_are_in_their_place(shown):
    rows = [[str(number)] for number in range(2 * BLOCK)]

    lines = table(shown, ["#"], rows, alarming={0, 7, BLOCK})

    assert [int(line) for line in lines[1:]] == list(range(2 * BLOCK))


@pytest.mark.parametrize(
    ("needed", "available", "widths"),
    [
        ([3, 30, 10], 47, [3, 30, 10]),
        ([3, 30, 10], 40, [3, 23, 10]),
        ([3, 30, 20], 29, [3, 11, 11]),
        ([3, 8, 8], 10, [3, 6, 6]),
        ([3, 4, 8], 10, [3, 4, 6]),
    ],
)
def test_the_longest_text_gives_way_first(needed, available, widths):
    least = [needed[0], min(needed[1], LEAST), min(needed[2], LEAST)]

    fit = fitted(needed, least, available)

    assert fit == widths


def test_a_number_within_a_text_is_never_cut(shown):
    (_, one, *_) = table(shown, ["shape"], [["(32, 1024)"]], width=8)
    (_, other) = table(shown, ["line"], [["train.py:123456"]], width=6)

    assert (one, other) == ("(32, …", "…")


def test_columns_without_room_stand_below_with_the_first_one(shown):
    rows = [["Net.a", "10 ms", "20 ms", "7"], ["Net.b", "1 ms", "2 ms", "8"]]

    lines = table(shown, ["module", "took", "longest", "runs"], rows, width=16)

    assert lines == [
        *("module   took", "Net.a   10 ms", "Net.b    1 ms"),
        *("module  longest", "Net.a     20 ms", "Net.b      2 ms"),
        *("module  runs", "Net.a      7", "Net.b      8"),
    ]


def test_bars_are_drawn_where_they_leave_texts_room(shown):
    rows = [["MulBackward0", share(0.5)]]

    wide, narrow = (table(shown, ["name", "share"], rows, width=n) for n in (29, 28))

    assert wide[1:] == ["MulBackward0  █████       50%"]
    assert narrow == ["name          share", "MulBackward0    50%"]


def test_an_error_goes_on_in_the_next_line_and_other_texts_do_not(shown):
    error = "ValueError: it was not to be"

    lines = table(
        shown,
        ["name", "error", "#"],
        [["x" * 20, error, "1"], ["y", "z", "2"]],
        width=35,
    )

    assert lines == [
        "name    error                     #",
        "xxxxx…  ValueError: it was not    1",
        "        to be",
        "y       z                         2",
    ]


def test_a_table_may_stand_away_from_the_margin(shown):
    lines = table(shown, ["name", "#"], [["x" * 30, "1"]], width=12, indent=2)

    assert lines == ["  name     #", "  xxxxxx…  1"]
