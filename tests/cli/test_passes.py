from gradviz.cli.passes import each_pass
from gradviz.trace.reader import load_trace
from tests.cli.conftest import record_backwards


def test_passes_beyond_the_first_ones_are_counted_in_a_note(tmp_path, capsys):
    trace = load_trace(record_backwards(tmp_path / "three.gvt", [1, 1, 1]))

    assert list(each_pass(trace, "all", most=2)) == list(trace.tasks)[:2]
    assert capsys.readouterr().err == (
        "gradviz: 2 passes of 3 are shown, the first ones\n"
    )


def test_where_all_are_shown_there_is_no_note(trace_path, capsys):
    trace = load_trace(trace_path)

    assert list(each_pass(trace, "all", most=2)) == list(trace.tasks)
    assert not capsys.readouterr().err
