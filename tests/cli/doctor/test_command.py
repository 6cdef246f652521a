import importlib.metadata
import json
import os
import subprocess
import sys

import pytest

import gradviz
from gradviz.cli.run.children import FOLLOWED
from gradviz.render import conversion
from gradviz.render.graph import graphviz

#: Runs the command line, and says which modules were there at its end.
PROGRAM = """
import sys
from gradviz.cli.main import gradviz
try: gradviz(["doctor", "--json"])
finally: print(*sys.modules, file=sys.stderr)
"""


@pytest.fixture
def doctor(tmp_path, monkeypatch):
    """Run ``gradviz doctor`` in a process of its own; return findings and imports."""
    monkeypatch.chdir(tmp_path)

    def call(**surroundings: str):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, **surroundings},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        document = json.loads(done.stdout)
        assert document["schema"] == "gradviz.doctor"
        found = {one["name"]: one for one in document["findings"]}
        assert document["fine"] == (done.returncode == 0)
        return found, done.stderr.split()

    return call


def test_all_is_fine_where_the_tests_run_and_nothing_optional_imported(doctor):
    found, modules = doctor()

    assert {one["state"] for one in found.values()} == {"ok", "absent"}
    assert "numpy" in modules
    assert {"cupy", "pygraphviz", "pyarrow", "textual", "torch", "typst"}.isdisjoint(
        modules
    )
    assert found["numpy"]["told"] == importlib.metadata.version("numpy")
    assert found["compiled"]["told"].startswith("yes" if gradviz.compiled else "no: ")
    assert found["backward"]["state"] == "ok"
    assert found["write"]["state"] == "ok"
    assert found["trace"]["state"] == "absent"


def test_a_required_package_that_is_broken_is_reported_as_failed(
    doctor, tmp_path
) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "msgspec.py").write_text("raise ImportError('cut in half')")

    found, _ = doctor(PYTHONPATH=str(tmp_path / "broken"))

    assert found["msgspec"]["state"] == "failed"
    assert "cut in half" in found["msgspec"]["told"]
    assert found["msgspec"]["advice"]
    assert found["numpy"]["state"] == "ok"


def test_the_dot_on_the_path_is_the_one_that_is_told(call, tmp_path, monkeypatch):
    dot = tmp_path / "dot"
    dot.write_text("#!/bin/sh\n")
    dot.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert f"graphviz    {dot}, on the PATH" in call("doctor").stdout


@pytest.mark.parametrize("is_here", [True, False])
def test_without_dot_it_is_that_of_pygraphviz_or_how_to_get_one(
    is_here, call, tmp_path, monkeypatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(graphviz, "_has_pygraphviz", lambda: is_here)

    told = call("doctor").stdout

    assert ("no dot on the PATH" in told) is is_here
    assert ("pip install 'gradviz[dot]'" in told) is not is_here


@pytest.mark.parametrize("is_here", [True, False])
def test_doctor_advises_to_install_pictures_only_where_they_are_missing(
    is_here, call, monkeypatch
) -> None:
    monkeypatch.setattr(conversion, "is_available", lambda: is_here)

    assert ("pip install 'gradviz[pictures]'" in call("doctor").stdout) is not is_here


def test_a_folder_that_cannot_be_written_fails(call, monkeypatch) -> None:
    monkeypatch.setattr("tempfile.TemporaryFile", refuse)

    result = call("doctor")

    assert result.exit_code == 1
    assert "cannot be written: Read-only file system: say where" in result.stdout


def refuse(**_):
    raise OSError(30, "Read-only file system")


def test_the_newest_trace_here_is_told(trace_path, call) -> None:
    assert (
        f"{trace_path.name}, {trace_path.stat().st_size:,} b" in call("doctor").stdout
    )


def test_the_terminal_is_told_with_its_limits(call, monkeypatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "123")

    told = call("doctor").stdout

    assert "123 columns" in told
    assert "none (NO_COLOR is set)" in told


def test_doctor_reports_the_programs_that_the_variable_records(
    call, monkeypatch
) -> None:
    monkeypatch.delenv("GRADVIZ_TRACE", raising=False)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    told = call("doctor").stdout
    assert "GRADVIZ_TRACE=1 would record each program that imports gradviz" in told
    assert f"PYTHONPATH={FOLLOWED} those too that import only PyTorch" in told

    monkeypatch.setenv("GRADVIZ_TRACE", "x.gvt")
    monkeypatch.setenv("PYTHONPATH", str(FOLLOWED))
    told = call("doctor").stdout
    assert "GRADVIZ_TRACE=x.gvt records each program that imports gradviz, and" in told

    monkeypatch.setenv("GRADVIZ_TRACE", "standby")
    told = call("doctor").stdout
    assert "GRADVIZ_TRACE=standby lets 'gradviz attach' record each program" in told
