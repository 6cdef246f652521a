"""``gradviz view``, as a program."""

import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from http.cookiejar import CookieJar

import pytest


@pytest.fixture
def started(tmp_path):
    """Starts ``gradviz ...`` and gives it with the address that it prints."""
    processes = []

    def start(*words: object, **variables: str):
        process = subprocess.Popen(
            [sys.executable, "-m", "gradviz", *map(str, words)],
            cwd=tmp_path,
            env={**os.environ, "DISPLAY": "", "WAYLAND_DISPLAY": ""} | variables,
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        processes.append(process)
        said = ""
        while not (found := re.search(r"http://127\S+", said)):
            line = process.stderr.readline()
            assert line, said
            said += line
        return process, found[0]

    yield start
    for process in processes:
        process.kill()
        process.communicate()


class Browser:
    """Keeps cookies, and knows nothing else of a browser.

    Args:
        address: What ``gradviz view`` prints.
    """

    def __init__(self, address: str) -> None:
        self._opener = urllib.request.build_opener(
            urllib.request.HTTPCookieProcessor(CookieJar()),
            urllib.request.ProxyHandler({}),
        )
        self._place = address.partition("/?")[0]
        with self._opener.open(address, timeout=30) as answer:
            answer.read()

    def fetch(self, path: str) -> bytes:
        with self._opener.open(self._place + path, timeout=30) as answer:
            return answer.read()

    def wait_for(self, path: str, text: bytes) -> bytes:
        """Return the answer once it has this text."""
        while text not in (answer := self.fetch(path)):
            pass
        return answer


def test_it_shows_a_trace_until_ctrl_c(started, trace_path):
    process, address = started("view", "--no-open", trace_path)

    assert b'id="data"' in Browser(address).fetch("/")
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    assert process.stderr.read().strip() == ""


def test_once_ends_it_after_a_page(started, trace_path):
    process, address = started("view", "--once", "--no-open", trace_path)

    with pytest.raises(urllib.error.HTTPError, match="403") as refusal:
        Browser(address[:-1])
    refusal.value.close()
    Browser(address)
    assert process.wait(30) == 0


def test_without_a_browser_the_address_is_all_there_is(started, trace_path):
    process, _ = started("view", trace_path)

    assert "no browser found: open the address yourself" in process.stderr.readline()


def test_the_browser_of_the_desktop_is_opened(started, trace_path, tmp_path):
    viewer = tmp_path / "bin" / "xdg-open"
    viewer.parent.mkdir()
    viewer.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/shown')
    viewer.chmod(0o755)
    os.mkfifo(tmp_path / "shown")
    path = f"{viewer.parent}:{os.environ['PATH']}"

    _, address = started("view", trace_path, PATH=path, DISPLAY=":0")
    assert (tmp_path / "shown").read_text() == f"{address}\n"


def test_a_busy_port_is_one_line(started, trace_path, call):
    _, address = started("view", "--no-open", trace_path)
    port = re.search(r":(\d+)/", address)[1]

    done = call("view", "--no-open", "--port", port, trace_path)
    assert done.exit_code == 1
    assert done.stderr == (
        f"gradviz: cannot listen on port {port} of 127.0.0.1: it is in use; choose "
        "another with --port, or leave that out for a free one\n"
    )


@pytest.mark.parametrize("missing", ["none.gvt", "folder/"])
def test_a_missing_path_exits_with_three_and_advice(call, missing):
    done = call("view", "--no-open", missing)

    assert done.exit_code == 3
    assert "name a trace, or a folder of traces" in done.stderr


def test_a_missing_path_has_the_exit_code_of_other_commands(call) -> None:
    assert call("view", "nope").exit_code == 3
    assert call("show", "order", "nope").exit_code == 3
