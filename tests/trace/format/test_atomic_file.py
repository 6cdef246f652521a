import os
import stat

import pytest

from gradviz.trace.format.atomic_file import FOR_ALL, FOR_OWNER, write_whole


def test_a_file_holds_all_parts(tmp_path):
    write_whole(tmp_path / "x", [b"one", b"", b"two"])

    assert (tmp_path / "x").read_bytes() == b"onetwo"


def test_a_file_is_replaced_and_keeps_its_permissions(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"before, and longer")
    path.chmod(0o640)

    write_whole(path, [b"after"])

    assert path.read_bytes() == b"after"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize(
    ("mode", "umask", "expected"),
    [
        (FOR_ALL, 0o022, 0o644),
        (FOR_ALL, 0o077, 0o600),
        (FOR_OWNER, 0o022, 0o600),
        (FOR_OWNER, 0o277, 0o400),
    ],
)
def test_the_umask_narrows_the_permissions_of_a_new_file(
    tmp_path, mode, umask, expected
):
    before = os.umask(umask)
    try:
        write_whole(tmp_path / "x", [b"new"], mode)
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == expected


@pytest.mark.parametrize("there", [True, False])
def test_a_link_is_replaced_and_what_it_leads_to_stays(tmp_path, there):
    target, link = tmp_path / "target", tmp_path / "link"
    if there:
        target.write_bytes(b"precious")
    link.symlink_to(target)

    write_whole(link, [b"new"])

    assert not link.is_symlink()
    assert link.read_bytes() == b"new"
    assert target.exists() == there
    assert not there or target.read_bytes() == b"precious"


def parts_that_fail():
    yield b"half"
    raise KeyboardInterrupt


def test_a_write_that_is_interrupted_keeps_the_old_file(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"before")

    with pytest.raises(KeyboardInterrupt):
        write_whole(path, parts_that_fail())

    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_is_kept_by_the_disk_before_it_is_moved(tmp_path, monkeypatch):
    path = tmp_path / "x"
    seen = []
    monkeypatch.setattr(os, "fsync", lambda file: seen.append(path.exists()))

    write_whole(path, [b"new"])

    assert seen == [False]


def test_a_device_is_written_to_and_not_replaced(tmp_path):
    link = tmp_path / "null"
    link.symlink_to(os.devnull)

    write_whole(link, [b"gone"])

    assert link.is_symlink()
    assert stat.S_ISCHR(link.stat().st_mode)


def test_a_full_disk_is_said(tmp_path):
    (tmp_path / "full").symlink_to("/dev/full")

    with pytest.raises(OSError, match="No space left"):
        write_whole(tmp_path / "full", [b"new"])


def test_a_folder_that_is_not_there_is_said(tmp_path):
    with pytest.raises(FileNotFoundError):
        write_whole(tmp_path / "missing" / "x", [b"new"])
