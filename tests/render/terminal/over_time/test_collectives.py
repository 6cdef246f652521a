from gradviz.analysis.causes.stragglers import find_collectives
from gradviz.render.terminal.over_time.collectives import MAX_SHOWN, print_collectives
from tests.analysis.conftest import Story
from tests.analysis.ranks import rank_trace, ranks


def printed(trace, capsys):
    print_collectives(find_collectives(trace))
    return capsys.readouterr().out


def test_a_trace_without_collectives_says_so(capsys):
    assert printed(Story().trace(), capsys).strip() == "0 collectives"


def test_a_collective_names_the_node_that_made_a_rank_late(capsys):
    late = rank_trace(1, took=55, spans=((85, 100),))
    text = printed(ranks(rank_trace(0), late), capsys)

    assert "1 collective\n" in text
    assert "because of" in text
    assert "#0 MulBackward0 (" in text


def test_an_unknown_value_is_never_shown_as_a_number(capsys):
    story = Story()
    story.recorder.collective_began(-1, -1, 1, "gloo:barrier", "", -1, -1, -1, "", -1)
    (row,) = [
        line
        for line in printed(story.trace(), capsys).splitlines()
        if "barrier" in line
    ]

    assert "-1" not in row
    assert row.split().count("?") == 3  # bucket, rank and node
    assert row.split().count("unknown") == 2  # bytes and exposed time


def test_of_very_many_the_first_are_shown_and_the_rest_is_counted(capsys):
    spans = tuple((100 + 10 * i, 105 + 10 * i) for i in range(MAX_SHOWN + 2))
    text = printed(rank_trace(0, spans=spans, end=9_000), capsys)

    assert "2 more are not shown; --json has all" in text
