import errno
import os
import stat
from pathlib import Path

import pytest

from gradviz.errors import UserError
from gradviz.trace.recording.sink import FileSink, MemorySink


def test_memory_keeps_what_was_written():
    sink = MemorySink()
    sink.write(b"one")
    sink.write(b"two")
    sink.close()

    assert sink.contents() == b"onetwo"


def test_a_file_holds_what_was_written_at_once(tmp_path):
    sink = FileSink(tmp_path / "x.gvt")
    sink.write(b"one")
    sink.write(b"two")

    assert (tmp_path / "x.gvt").read_bytes() == b"onetwo"
    sink.close()


def test_a_file_is_its_owners_only(tmp_path):
    FileSink(tmp_path / "x.gvt").close()

    assert stat.S_IMODE((tmp_path / "x.gvt").stat().st_mode) == 0o600


def test_a_short_write_is_continued(tmp_path, monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:3]))
    sink = FileSink(tmp_path / "x.gvt")
    sink.write(b"0123456789")
    sink.close()

    assert (tmp_path / "x.gvt").read_bytes() == b"0123456789"


def test_a_failed_write_is_raised(tmp_path, monkeypatch):
    def full(file, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    sink = FileSink(tmp_path / "x.gvt")
    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"):
        sink.write(b"data")
    sink.close()


def test_a_file_that_is_removed_meanwhile_is_noticed(tmp_path):
    path = tmp_path / "x.gvt"
    sink = FileSink(path)
    path.unlink()

    with pytest.raises(FileNotFoundError, match="removed or replaced"):
        sink.write(b"one")
    with pytest.raises(FileNotFoundError, match="removed or replaced"):
        sink.close()


def test_a_file_that_another_sink_replaces_is_noticed(tmp_path):
    sink = FileSink(tmp_path / "x.gvt")
    other = FileSink(tmp_path / "x.gvt", force=True)

    with pytest.raises(FileNotFoundError, match="removed or replaced"):
        sink.write(b"one")
    other.write(b"two")
    other.close()
    assert (tmp_path / "x.gvt").read_bytes() == b"two"


def test_a_file_that_is_moved_is_written_where_it_is(tmp_path):
    sink = FileSink(tmp_path / "x.gvt")
    (tmp_path / "x.gvt").rename(tmp_path / "y.gvt")
    sink.write(b"one")
    sink.close()

    assert (tmp_path / "y.gvt").read_bytes() == b"one"


def test_an_existing_file_is_not_touched(tmp_path):
    path = tmp_path / "x.gvt"
    path.write_bytes(b"precious")

    with pytest.raises(UserError, match="exists and is not overwritten"):
        FileSink(path)
    assert path.read_bytes() == b"precious"


def test_force_replaces_a_file(tmp_path):
    path = tmp_path / "x.gvt"
    path.write_bytes(b"old and long")
    path.chmod(0o644)
    sink = FileSink(path, force=True)
    sink.write(b"new")
    sink.close()

    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_force_makes_a_file_where_there_is_none(tmp_path):
    path = tmp_path / "x.gvt"
    FileSink(path, force=True).close()

    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("force", [False, True])
def test_a_link_is_never_followed(tmp_path, force):
    target = tmp_path / "target"
    target.write_bytes(b"precious")
    link = tmp_path / "x.gvt"
    link.symlink_to(target)
    try:
        FileSink(link, force=force).close()
    except UserError:
        assert not force

    assert target.read_bytes() == b"precious"
    assert link.is_symlink() is not force


@pytest.mark.parametrize("force", [False, True])
def test_a_dangling_link_makes_no_file_elsewhere(tmp_path, force):
    link = tmp_path / "x.gvt"
    link.symlink_to(tmp_path / "elsewhere")
    try:
        FileSink(link, force=force).close()
    except UserError:
        assert not force

    assert not (tmp_path / "elsewhere").exists()


def test_force_replaces_no_directory(tmp_path):
    with pytest.raises(UserError, match="is not a file"):
        FileSink(tmp_path, force=True)


def test_force_replaces_no_device():
    with pytest.raises(UserError, match="is not a file"):
        FileSink(Path("/dev/null"), force=True)


@pytest.mark.parametrize("force", [False, True])
def test_a_missing_folder_is_told(tmp_path, force):
    with pytest.raises(UserError, match=r"cannot write a trace to .*No such file"):
        FileSink(tmp_path / "no" / "x.gvt", force=force)


def test_a_name_that_is_too_long_is_told(tmp_path):
    with pytest.raises(UserError, match="too long"):
        FileSink(tmp_path / ("x" * 300))


def test_a_name_that_cannot_be_one_is_told(tmp_path):
    # "embedded null byte", or "null character in path", as the interpreter has it
    with pytest.raises(UserError, match="null "):
        FileSink(tmp_path / "x\0y")


def test_a_longest_name_can_be_replaced(tmp_path):
    path = tmp_path / ("x" * 255)
    path.write_bytes(b"old")
    FileSink(path, force=True).close()

    assert path.read_bytes() == b""


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_an_unwritable_folder_is_told(tmp_path):
    tmp_path.chmod(0o500)

    with pytest.raises(UserError, match="Permission denied"):
        FileSink(tmp_path / "x.gvt")


@pytest.mark.parametrize("force", [False, True])
def test_a_file_is_closed_in_programs_that_are_started(tmp_path, force):
    if force:
        (tmp_path / "x.gvt").write_bytes(b"older")
    sink = FileSink(tmp_path / "x.gvt", force=force)

    assert not os.get_inheritable(sink._file)
    sink.close()


def test_the_disk_is_asked_to_keep_a_file_before_it_is_closed(tmp_path, monkeypatch):
    done = []
    fsync, close = os.fsync, os.close
    monkeypatch.setattr(os, "fsync", lambda file: (done.append("fsync"), fsync(file)))
    monkeypatch.setattr(os, "close", lambda file: (done.append("close"), close(file)))
    sink = FileSink(tmp_path / "x.gvt")
    sink.write(b"data")
    sink.close()

    assert done == ["fsync", "close"]


def test_a_disk_that_keeps_nothing_is_told_and_the_file_closed(tmp_path, monkeypatch):
    def fail(file):
        raise OSError(errno.EIO, "Input/output error")

    sink = FileSink(tmp_path / "x.gvt")
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="Input/output"):
        sink.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(sink._file)


def test_a_descriptor_that_the_program_has_closed_is_neither_written_nor_closed(
    tmp_path,
) -> None:
    sink = FileSink(tmp_path / "x.gvt")
    sink.write(b"ours")
    os.close(sink._file)
    other = os.open(tmp_path / "theirs", os.O_RDWR | os.O_CREAT)
    assert other == sink._file  # the next file gets the number

    with pytest.raises(OSError, match="the program has closed"):
        sink.write(b"more")
    with pytest.raises(OSError, match="the program has closed"):
        sink.close()

    os.write(other, b"theirs")
    os.close(other)
    assert (tmp_path / "theirs").read_bytes() == b"theirs"
    assert (tmp_path / "x.gvt").read_bytes() == b"ours"
