import os
from pathlib import Path

import pytest

VIEWS = ["summary", "order", "timeline"]


def test_the_newest_trace_of_the_folder_is_the_default(trace_path, call) -> None:
    older = trace_path.with_name("older.gvt")
    older.write_bytes(b"not even a trace")
    os.utime(older, (1, 1))

    result = call("show", "order")

    assert result.exit_code == 0
    assert result.stderr == "gradviz: reading two.gvt, the newest trace here\n"


def test_a_folder_without_traces_is_an_error_that_says_what_to_do(call) -> None:
    result = call("show", "order")

    assert result.exit_code == 1
    assert "gradviz run" in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "content",
    [b"", b"\x00" * 100, b"hello, I am a text"],
    ids=["empty", "zeros", "text"],
)
@pytest.mark.parametrize("view", VIEWS)
def test_a_file_that_is_no_trace_exits_with_three(
    view: str, content: bytes, tmp_path: Path, call
) -> None:
    (tmp_path / "x.gvt").write_bytes(content)

    result = call("show", view, "x.gvt")

    assert (result.exit_code, result.stdout) == (3, "")
    assert len(result.stderr.splitlines()) == 1
    assert "x.gvt" in result.stderr


@pytest.mark.parametrize("name", ["missing.gvt", "."])
def test_a_path_without_a_trace_is_refused_with_3(name: str, call) -> None:
    result = call("show", "order", name)

    assert (result.exit_code, result.stdout) == (3, "")
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("view", VIEWS)
def test_a_cut_trace_is_shown_with_a_warning(view: str, trace_path, call) -> None:
    whole = trace_path.read_bytes()
    trace_path.write_bytes(whole[: len(whole) - 7])

    result = call("show", view, trace_path)

    assert result.exit_code == 0
    assert "Double" in result.stdout
    assert len(result.stderr.splitlines()) == 1
    assert "warning" in result.stderr
    assert "cut off" in result.stderr


def test_a_damaged_trace_is_shown_with_a_warning(trace_path, call) -> None:
    content = bytearray(trace_path.read_bytes())
    content[-3] ^= 1
    trace_path.write_bytes(content)

    result = call("show", "order", trace_path)

    assert result.exit_code == 0
    assert "Double" in result.stdout
    assert "bytes are damaged" in result.stderr


def test_a_whole_trace_is_read_without_a_word(trace_path, call) -> None:
    assert call("show", "order", trace_path).stderr == ""
