from pathlib import Path

import pytest

from gradviz.cli.console.output import check_output, write_output
from gradviz.errors import UserError


def test_an_output_that_exists_is_refused_without_force(tmp_path: Path) -> None:
    path = tmp_path / "x.svg"
    path.write_bytes(b"old")

    with pytest.raises(UserError, match=r"exists already.*-f"):
        check_output(path, force=False)
    check_output(path, force=True)


def test_a_dangling_link_counts_as_an_output_that_exists(tmp_path: Path) -> None:
    path = tmp_path / "x.svg"
    path.symlink_to(tmp_path / "nothing")

    with pytest.raises(UserError, match="exists already"):
        check_output(path, force=False)


@pytest.mark.parametrize("name", [".", "/dev/null"])
def test_a_path_that_is_no_regular_file_is_refused_even_with_force(
    name: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match="not a regular file"):
        check_output(tmp_path / name, force=True)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no folder .*missing"):
        check_output(tmp_path / "missing" / "x.svg", force=False)


def test_a_file_is_written_whole_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "x.svg"
    path.write_bytes(b"old")

    write_output(path, b"new")

    assert path.read_bytes() == b"new"
    assert [one.name for one in tmp_path.iterdir()] == ["x.svg"]


def test_a_link_is_replaced_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_bytes(b"kept")
    path = tmp_path / "x.svg"
    path.symlink_to(target)

    write_output(path, b"new")

    assert target.read_bytes() == b"kept"
    assert path.read_bytes() == b"new"


def test_a_failing_write_leaves_the_old_file_and_no_rubbish(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 300)

    with pytest.raises(UserError, match=r"cannot write .*: File name too long"):
        write_output(path, b"data")

    assert list(tmp_path.iterdir()) == []


def test_a_dash_is_stdout(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    check_output(Path("-"), force=False)
    write_output(Path("-"), b"\x89PNG\n")

    assert capfdbinary.readouterr().out == b"\x89PNG\n"
