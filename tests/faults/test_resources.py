"""Exhausted resources of a process: files, threads, space.

Each program lowers a limit of its own, so that nothing else suffers.
"""

import os
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

import pytest

import gradviz as gv
from gradviz.trace.reading.reader import load_trace

PREAMBLE = """
import os, resource, signal, sys, warnings
import gradviz as gv
from gradviz.errors import UserError

def backward(device="cpu"):
    x = gv.ones(2, requires_grad=True)
    (x.to(device) * 2).sum().backward()
    assert x.grad.tolist() == [2, 2]

def limit(what, number):
    resource.setrlimit(what, (number, resource.getrlimit(what)[1]))
"""


def run(
    source: str, folder: Path, *, arguments: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PREAMBLE + textwrap.dedent(source), *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_without_file_descriptors_recording_and_saving_are_refused(tmp_path):
    done = run(
        """
        gv.save({"w": gv.ones(2)}, "w.safetensors")
        limit(resource.RLIMIT_NOFILE, len(os.listdir("/proc/self/fd")) - 1)
        for call in (
            lambda: gv.record("x.gvt"),
            lambda: gv.load_trace("x.gvt"),
            lambda: gv.save({"w": gv.zeros(2)}, "w.safetensors"),
            lambda: gv.load("w.safetensors"),
        ):
            try:
                call()
            except (UserError, OSError) as error:
                print(error)
        backward()
        backward("sim:0")
        limit(resource.RLIMIT_NOFILE, 64)
        print(gv.load("w.safetensors")["w"].tolist(), os.listdir())
        """,
        tmp_path,
    )

    assert (done.returncode, done.stderr) == (0, "")
    *refusals, rest = done.stdout.splitlines()
    assert len(refusals) == 4
    assert all("Too many open files" in line for line in refusals)
    assert rest == "[1.0, 1.0] ['w.safetensors']"


#: Records until no more can be written, then replaces a checkpoint.
FILLING = """
sys.dont_write_bytecode = True  # which would stay, cut short
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
warnings.simplefilter("ignore", RuntimeWarning)
gv.save({"w": gv.ones(2)}, "w.safetensors")
with gv.record("x.gvt") as recording:
    if len(sys.argv) > 1:
        limit(resource.RLIMIT_FSIZE, int(sys.argv[1]))
    for _ in range(300):
        backward()
print(recording.failure)
try:
    gv.save({"w": gv.zeros(2_000)}, "w.safetensors")
except OSError as error:
    print(error)
print(gv.load("w.safetensors")["w"].tolist(), sorted(os.listdir()))
"""


def assert_kept(done: subprocess.CompletedProcess[str], words: str, trace: Path):
    """The trace is cut and says why, and the checkpoint is the one that was there."""
    assert (done.returncode, done.stderr) == (0, "")
    recording, checkpoint, rest = done.stdout.splitlines()
    assert words in recording
    assert words in checkpoint
    assert rest == "[1.0, 1.0] ['w.safetensors', 'x.gvt']"
    assert not load_trace(trace).losses.is_complete


def test_a_limit_of_the_size_of_files_costs_the_trace_and_leaves_checkpoints(tmp_path):
    done = run(FILLING, tmp_path, arguments=["2000"])

    assert_kept(done, "File too large", tmp_path / "x.gvt")


def test_without_threads_a_trace_is_written_at_the_end_and_devices_say_so(tmp_path):
    """RLIMIT_NPROC, which does not hold for root: so nobody runs this."""
    done = run(
        """
        with gv.record() as recording:  # import all there is while it can be read
            backward()
        recording.trace
        if os.getuid() == 0:
            os.setuid(65534)
        limit(resource.RLIMIT_NPROC, 1)
        with gv.record() as recording:
            backward()
        print(len(recording.trace.tasks), recording.trace.losses.is_complete)
        try:
            backward("sim:0")
        except RuntimeError as error:
            print(type(error).__name__, error)
        backward()
        """,
        tmp_path,
    )

    assert (done.returncode, done.stderr) == (0, "")
    recorded, refusal = done.stdout.splitlines()
    assert recorded == "1 True"
    assert "thread" in refusal


def test_a_small_disk_takes_what_fits_and_is_said(tmp_path):
    """F12."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(disk)]
    if (
        os.getuid()
        or subprocess.run(mount, capture_output=True, check=False).returncode
    ):
        pytest.skip("no disk can be mounted here")
    try:
        assert_kept(run(FILLING, disk), "No space left", disk / "x.gvt")
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize("words", [["--help"], ["show", "order", "x.gvt"]])
def test_output_that_cannot_be_written_is_one_line(words, tmp_path):
    with gv.record(tmp_path / "x.gvt"):
        gv.ones(2, requires_grad=True).sum().backward()

    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "gradviz", *words],
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
            check=False,
        )

    assert done.returncode == 1
    assert done.stderr == "gradviz: [Errno 28] No space left on device\n"
