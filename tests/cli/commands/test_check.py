import json
from pathlib import Path

import pytest

import gradviz as gv
from gradviz.analysis.tables.worker_parts import MAX_PARTS
from gradviz.capture.session import record
from gradviz.trace import probe
from gradviz.trace.events import KernelLaunched
from tests.cli import bad_files
from tests.trace.reports import begin_pass

WHOLE = "0;8;8;8"


def race(first="sim:0/0", second="sim:0/1", name="mul"):
    for kernel, stream in enumerate((first, second)):
        probe.current.kernel_launched(kernel, stream, name)
        probe.current.array_accessed(kernel, 1, WHOLE, True)


def test_a_trace_in_which_nothing_is_wrong(call, trace_path):
    done = call("check", trace_path)

    assert done.exit_code == 0
    assert done.stdout.startswith("nothing is wrong: ")
    assert done.stdout.endswith(" events, 0 kernels on streams\n")


@pytest.mark.races
def test_a_race_is_told_and_exits_with_one(call, tmp_path):
    with record(tmp_path / "x.gvt"):
        race()

    done = call("check")
    assert done.exit_code == 1
    lines = done.stdout.splitlines()
    assert lines[:2] == [
        "races between streams: 1",
        "1. memory 1 is used by two streams in no order:",
    ]
    assert lines[2].startswith("  first:   mul on sim:0/0 writes it, at ")
    assert lines[4] == (
        "  missing: sim:0/1 must wait for sim:0/0 before this: "
        's1.wait_stream(gv.default_stream("sim:0"))'
    )
    assert "nothing is wrong" not in done.stdout


@pytest.mark.breaks_lifecycle
def test_events_out_of_place_are_told_and_exit_with_one(call, tmp_path):
    with record(tmp_path / "x.gvt") as recording:
        for _ in range(123):
            probe.current.kernel_launched(1, "sim:0/0", "mul")

    done = call("check")
    # Before the first one the trace may tell of threads, if the process has streams.
    _, second, *_ = (
        event.seq
        for event in recording.trace.events()
        if isinstance(event, KernelLaunched)
    )
    lines = done.stdout.splitlines()
    assert done.exit_code == 1
    assert lines[0] == "122 events out of place:"
    assert lines[1] == (
        f"- event {second}, kernel_launched: its kernel has begun before"
    )
    assert lines[101] == "- and 22 more"


@pytest.mark.races
def test_json_holds_all_of_it(call, tmp_path):
    with record(tmp_path / "x.gvt"):
        race()

    done = call("check", "--json")
    document = json.loads(done.stdout)
    assert done.exit_code == 1
    assert (document["schema"], document["fine"]) == ("gradviz.check", False)
    assert len(document["races"]) == 1


def test_json_of_a_trace_in_which_nothing_is_wrong(call, trace_path):
    done = call("check", "--json", trace_path)

    assert done.exit_code == 0
    assert json.loads(done.stdout)["fine"] is True


@pytest.mark.parametrize("content", [None, b"no trace"])
def test_a_file_that_cannot_be_read_exits_with_two(call, tmp_path, content):
    path = tmp_path / "x.gvt"
    if content is not None:
        path.write_bytes(content)

    done = call("check", path)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("gradviz: ")


def test_no_trace_at_all_exits_with_two(call):
    assert call("check").exit_code == 2


@pytest.mark.races
def test_names_in_a_trace_cannot_act_on_the_terminal(call, tmp_path):
    with record(tmp_path / "x.gvt"):
        race(name="\x1b[31mmul")

    assert "\x1b" not in call("check").stdout


def test_a_damaged_trace_is_not_fine(call, trace_path: Path):
    content = bytearray(trace_path.read_bytes())
    content[len(content) // 2] ^= 1
    trace_path.write_bytes(content)

    done = call("check", trace_path)
    assert done.exit_code == 1
    assert "the trace is incomplete:" in done.stdout
    assert " bytes are damaged\n" in done.stdout
    assert " is missing\n" in done.stdout
    assert "nothing is wrong" not in done.stdout
    assert "is incomplete" in done.stderr


@pytest.mark.parametrize("cut", [1, 10, 300])
def test_a_cut_trace_is_not_fine(call, trace_path: Path, cut):
    trace_path.write_bytes(trace_path.read_bytes()[:-cut])

    done = call("check", trace_path)
    assert done.exit_code == 1
    assert "- it goes on or was broken off\n" in done.stdout


def test_a_trace_of_nothing_cannot_be_checked(call, tmp_path, record_empty):
    done = call("check", record_empty(tmp_path / "x.gvt"))

    assert done.exit_code == 2
    assert done.stdout == "nothing to check: the trace holds no backward pass\n"


def test_an_empty_trace_that_is_cut_is_wrong(call, tmp_path, record_empty):
    path = record_empty(tmp_path / "x.gvt")
    path.write_bytes(path.read_bytes()[:-10])

    done = call("check", path)
    assert done.exit_code == 1
    assert "nothing to check" in done.stdout


def test_a_pass_that_failed_is_told_with_its_error(call, failed_path):
    done = call("check", failed_path)

    first, second = done.stdout.splitlines()
    assert done.exit_code == 1
    assert first == "1 backward pass did not complete:"
    assert second.startswith("- pass ")
    assert second.endswith(" failed: ValueError: </svg> <b>boom</b>")


def test_a_pass_that_never_ended_is_told(call, tmp_path):
    with record(tmp_path / "x.gvt"):
        begin_pass(probe.current, 7)

    done = call("check")
    assert (done.exit_code, done.stdout.splitlines()[1]) == (
        1,
        "- pass 7 never ended",
    )


def test_json_tells_failures_and_losses(call, failed_path: Path):
    failed_path.write_bytes(failed_path.read_bytes()[:-10])

    document = json.loads(call("check", "--json", failed_path).stdout)
    assert (document["fine"], document["empty"]) == (False, False)
    assert document["failed"][0]["status"] == "failed"
    assert "boom" in document["failed"][0]["error"]
    assert document["losses"]["closed"] is False


def test_events_that_were_not_checked_are_reported(call, trace_path, monkeypatch):
    monkeypatch.setattr("gradviz.trace.checking.lifecycle.MAX_SEEN", 5)

    done = call("check", trace_path)
    assert done.exit_code == 1
    assert "events were not checked" in done.stdout


def test_advice_is_told_beside_what_is_wrong_and_changes_no_exit_code(call, tmp_path):
    with record(tmp_path / "x.gvt"):
        x = gv.ones(128, requires_grad=True)
        x.exp().sum().backward(retain_graph=True)

    plain, advised = call("check"), call("check", "--advice")

    assert (plain.exit_code, advised.exit_code) == (0, 0)
    assert advised.stdout.startswith(plain.stdout)
    assert "Leave out retain_graph" in " ".join(advised.stdout.split())
    document = json.loads(call("check", "--advice", "--json").stdout)
    (found,) = document["advice"]["findings"]
    assert (found["rule"], found["cost_bytes"]) == ("needless_retain_graph", 512)
    assert "advice" not in json.loads(call("check", "--json").stdout)


def test_parts_that_a_pass_has_no_room_for_are_counted(call, tmp_path):
    (tmp_path / "x.gvt").write_bytes(bad_files.parts_of_one_pass())

    document = json.loads(call("check", "--json").stdout)

    assert document["parts_apart"] == 180_000 - MAX_PARTS
    assert not document["fine"]
    told = f"{180_000 - MAX_PARTS:,} parts of distributed passes counted as passes"
    assert told in call("check").stdout


def test_a_loss_that_is_not_finite_is_told_and_exits_with_one(call, tmp_path):
    with record(tmp_path / "x.gvt"):
        (gv.zeros(1, requires_grad=True) * float("nan")).sum().backward()

    done = call("check")

    assert done.exit_code == 1
    first, value, hint = done.stdout.splitlines()
    assert first == "1 value not finite, the first ones first:"
    assert "NaN in the loss" in value
    assert "--check-finite" in hint
