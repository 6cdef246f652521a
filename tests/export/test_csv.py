import csv

import pytest

from gradviz.export.csv import parts


def cells(trace, table):
    text = b"".join(parts(trace, table)).decode()
    return [*csv.reader(text.splitlines(keepends=True))]


def test_the_first_line_names_the_columns_and_null_is_empty(pair):
    story, *_ = pair
    names, first, _ = cells(story.trace(), "runs")

    run = dict(zip(names, first, strict=True))
    assert run["name"] == "MulBackward0"
    assert run["waited_ns"] == "5"
    assert run["error"] == ""


@pytest.mark.parametrize("begin", ["=", "+", "-", "@", "\t", "\r", "\n"])
def test_no_text_is_taken_for_a_formula(begin, story):
    story.begin(7, [story.node(1, name=f'{begin}1+cmd|"x"!A1')], at=0)
    _, node = cells(story.trace(), "nodes")

    assert node[1] == f'\'{begin}1+cmd|"x"!A1'


def test_a_negative_number_stays_a_number(story):
    story.begin(7, [], at=0)
    story.recorder.queue_waited(-5, 3)
    _, queue = cells(story.trace(), "queues")

    assert queue[0] == "-5"
