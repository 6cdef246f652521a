import os
import select
import stat
import sys

import pytest

from gradviz.errors import MissingToolError, RenderTimeoutError, UserError
from gradviz.render.graph import graphviz


@pytest.fixture
def fake_dot(tmp_path, monkeypatch):
    """Puts a program called dot, with this body in Python, alone on the PATH."""

    def make(body):
        program = tmp_path / "dot"
        program.write_text(f"#!{sys.executable}\nimport os, sys, time\n{body}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", str(tmp_path))

    return make


@pytest.fixture
def no_graphviz(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(graphviz, "_has_pygraphviz", lambda: False)


def test_dot_gets_the_source_and_its_answer_comes_back(fake_dot):
    fake_dot("print(sys.argv[1:], sys.stdin.read())")

    answer = graphviz.run("digraph {}", "plain", timeout_s=30)

    assert answer == b"['-Kdot', '-Tplain'] digraph {}\n"


def test_dot_may_not_load_files(fake_dot):
    fake_dot("print(os.environ['SERVER_NAME'])")

    assert graphviz.run("", "plain", timeout_s=30) == b"gradviz\n"
    assert "SERVER_NAME" not in os.environ


def test_a_dot_that_takes_too_long_is_stopped(fake_dot):
    fake_dot("time.sleep(600)")

    with pytest.raises(RenderTimeoutError, match=r"longer than 0.2 s") as raised:
        graphviz.run("", "plain", timeout_s=0.2)

    assert raised.value.exit_code == 5


def test_a_child_process_of_a_dot_that_takes_too_long_is_stopped_too(
    fake_dot, tmp_path
):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    end = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    begun = tmp_path / "begun"
    fake_dot(
        f"os.open({str(pipe)!r}, os.O_WRONLY); os.fork(); open({str(begun)!r}, 'w')\n"
        "time.sleep(600)"
    )

    for timeout_s in (1, 10, 60):  # a busy machine takes long to start a program
        with pytest.raises(RenderTimeoutError):
            graphviz.run("", "plain", timeout_s=timeout_s)
        if begun.exists():
            break

    # Readable, at its end, once nobody is left who could write.
    assert select.select([end], [], [], 20) == ([end], [], [])
    os.close(end)


def test_a_dot_that_writes_without_end_is_stopped_when_it_is_no_picture_any_more(
    fake_dot, monkeypatch
):
    monkeypatch.setattr(graphviz, "MAX_ANSWER", 1 << 20)
    fake_dot("while True: print(*range(1_000))")

    with pytest.raises(UserError, match="more than 1 MiB and was stopped"):
        graphviz.run("", "plain", timeout_s=30)


def test_a_dot_that_reads_nothing_may_answer(fake_dot):
    fake_dot("print('graph')")

    assert graphviz.run("x" * (1 << 20), "plain", timeout_s=30) == b"graph\n"


def test_a_dot_that_fails_is_quoted(fake_dot):
    fake_dot("sys.exit('syntax error in line 1')")

    with pytest.raises(UserError, match="exit code 1: syntax error in line 1"):
        graphviz.run("", "plain", timeout_s=30)


def test_a_dot_that_says_nothing_has_failed(fake_dot):
    fake_dot("")

    with pytest.raises(UserError, match="Graphviz failed"):
        graphviz.run("", "plain", timeout_s=30)


def test_a_dot_that_cannot_be_started_is_a_clear_error(tmp_path, monkeypatch):
    program = tmp_path / "dot"
    program.write_bytes(b"\x7fELF no program")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(UserError, match="cannot be started"):
        graphviz.run("", "plain", timeout_s=30)


def test_without_graphviz_the_error_says_what_to_install(no_graphviz):
    with pytest.raises(MissingToolError, match=r"gradviz\[dot\].*engine own") as raised:
        graphviz.run("", "png", timeout_s=30)

    assert raised.value.exit_code == 4
    assert not graphviz.is_available()


def test_pygraphviz_stands_in_for_a_missing_dot(no_graphviz, tmp_path, monkeypatch):
    (tmp_path / "pygraphviz.py").write_text(
        "class AGraph:\n"
        "    def __init__(self, string):\n"
        "        self.string = string\n"
        "    def draw(self, path, format, prog):\n"
        "        return f'{path} {format} {prog} {self.string}'.encode()\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(graphviz, "_has_pygraphviz", lambda: True)

    answer = graphviz.run("digraph { ä }", "png", timeout_s=30)

    assert answer == "None png dot digraph { ä }".encode()
