import pytest

from gradviz.trace.reading.reader import load_trace
from tests.cli.conftest import record_backwards


@pytest.fixture
def paths(tmp_path):
    """Two recordings of this process."""
    return [record_backwards(tmp_path / f"{n}.gvt", [n]) for n in (2, 3)]


def test_two_traces_become_one_that_is_sound(paths, call, tmp_path):
    done = call("merge", *paths, "-o", "whole.gvt")

    assert done.exit_code == 0
    assert done.stdout == ""
    assert "merged 2 traces" in done.stderr
    assert call("check", "whole.gvt").exit_code == 0
    whole = load_trace(tmp_path / "whole.gvt")
    assert len(whole.tasks) == 2
    assert {one.name.partition(" / ")[0] for one in whole.threads.values()} == {
        "process 1",
        "process 2",
    }


def test_only_the_owner_may_read_it_as_with_any_trace(paths, call, tmp_path):
    whole = tmp_path / "whole.gvt"
    call("merge", *paths, "-o", whole)

    assert [one.stat().st_mode & 0o777 for one in (*paths, whole)] == [0o600] * 3
    whole.chmod(0o644)  # who allows others to read it is not overruled
    call("merge", *paths, "-f", "-o", whole)
    assert whole.stat().st_mode & 0o777 == 0o644


def test_it_can_go_to_stdout(paths, call, tmp_path):
    call("merge", *paths, "-o", "whole.gvt")
    done = call("merge", "-q", *paths, "-o", "-")

    assert done.stdout_bytes == (tmp_path / "whole.gvt").read_bytes()
    assert done.stderr == ""


def test_an_output_is_needed_and_never_replaced_unasked(paths, call):
    assert call("merge", *paths).exit_code == 2
    assert call("merge", *paths, "-o", paths[0]).exit_code == 1
    assert call("merge", *paths, "-f", "-o", paths[0]).exit_code == 0


def test_a_damaged_trace_is_merged_and_what_it_lacks_is_told(paths, call):
    paths[1].write_bytes(paths[1].read_bytes()[:-9])
    done = call("merge", *paths, "-o", "whole.gvt")

    assert done.exit_code == 0
    assert "is incomplete: its end is cut off" in done.stderr
    checked = call("check", "whole.gvt")
    assert checked.exit_code == 1
    assert "process 2: its end is cut off" in checked.stdout


def test_a_file_that_is_no_trace_is_refused_and_nothing_is_written(
    paths, call, tmp_path
):
    (tmp_path / "x").write_text("no trace")
    done = call("merge", *paths, "x", "-o", "whole.gvt")

    assert done.exit_code == 3
    assert not (tmp_path / "whole.gvt").exists()
