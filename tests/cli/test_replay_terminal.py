"""``gradviz replay`` on terminals: it starts, steps, resizes, leaves no trace."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

import pytest

#: What a terminal is told, besides text.
CONTROL = re.compile(
    rb"\x1b\[[0-9;?<=>:$ ]*[A-Za-z]|\x1b[\]P_^][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b."
)
STYLE = re.compile(rb"\x1b\[([0-9;]*)m")


def has_colors(output):
    codes = {
        int(code) for one in STYLE.findall(output) for code in one.split(b";") if code
    }
    return any(code // 10 in {3, 4, 9, 10} and code % 10 <= 8 for code in codes)


class Terminal:
    """A terminal of some size, on which the replay of a trace runs."""

    def __init__(self, path, width, height, *words, **variables):
        self.keyboard, self.screen = pty.openpty()
        self.resize(width, height)
        self.before = termios.tcgetattr(self.screen)
        surroundings = {
            name: value
            for name, value in os.environ.items()
            if name not in {"NO_COLOR", "COLUMNS", "LINES", "FORCE_COLOR"}
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gradviz", "replay", *words, path],
            stdin=self.screen,
            stdout=self.screen,
            stderr=self.screen,
            env={**surroundings, "TERM": "xterm-256color", **variables},
            start_new_session=True,
        )
        self.output = b""

    def resize(self, width, height):
        size = struct.pack("HHHH", height, width, 0, 0)
        fcntl.ioctl(self.screen, termios.TIOCSWINSZ, size)

    def press(self, keys):
        os.write(self.keyboard, keys)

    def read(self):
        """More of what was written; nothing if nothing comes for a while."""
        if not select.select([self.keyboard], [], [], 0.2)[0]:
            return
        self.output += os.read(self.keyboard, 1 << 16)

    def until(self, text):
        """Read until that stands in what was written since the last time."""
        deadline = time.monotonic() + 60
        while text.encode() not in CONTROL.sub(b"", self.output):
            self.read()
            assert time.monotonic() < deadline, (text, self.output[-3_000:])
        self.output, seen = b"", self.output
        return seen

    def end(self):
        """Wait for it; its exit code, what was written last, the terminal's modes."""
        deadline = time.monotonic() + 60
        while self.process.poll() is None and time.monotonic() < deadline:
            self.read()
        while select.select([self.keyboard], [], [], 0)[0]:
            self.read()
        after = termios.tcgetattr(self.screen)
        os.close(self.keyboard)
        os.close(self.screen)
        return self.process.wait(1), self.output, after


def is_restored(terminal):
    code, output, after = terminal.end()
    assert b"\x1b[?1049l" in output  # the screen from before
    assert b"\x1b[?25h" in output  # the cursor
    assert after == terminal.before  # echo, lines, signals
    return code == 0


def stress(*values):
    return pytest.param(*values, marks=pytest.mark.stress)


@pytest.mark.parametrize(
    ("width", "height", "variables"),
    [
        (80, 24, {}),
        stress(80, 24, {"NO_COLOR": "1"}),
        stress(120, 40, {}),
        stress(120, 40, {"NO_COLOR": "1"}),
        stress(200, 60, {}),
        stress(200, 60, {"NO_COLOR": "1"}),
    ],
)
def test_it_starts_steps_resizes_and_quits(trace_path, width, height, variables):
    terminal = Terminal(trace_path, width, height, **variables)
    seen = terminal.until("event 1/")
    terminal.press(b"\x1b[C")  # the right arrow
    terminal.until("Double")
    terminal.press(b"?")
    seen += terminal.until("these keys")
    terminal.press(b"q")
    terminal.resize(width - 30, height - 4)
    terminal.process.send_signal(signal.SIGWINCH)
    seen += terminal.until("gradviz replay")
    terminal.press(b"q")

    assert is_restored(terminal)
    assert has_colors(seen) == (not variables)


@pytest.mark.parametrize(
    "end",
    [
        stress(lambda terminal: terminal.press(b"\x03")),
        stress(lambda terminal: terminal.process.send_signal(signal.SIGTERM)),
        stress(lambda terminal: terminal.process.send_signal(signal.SIGHUP)),
    ],
    ids=["ctrl-c", "term", "hup"],
)
def test_however_it_ends_the_terminal_is_as_it_was(trace_path, end):
    terminal = Terminal(trace_path, 80, 24)
    terminal.until("event 1/")
    terminal.press(b" ")
    terminal.until("playing")
    end(terminal)

    assert is_restored(terminal)


@pytest.mark.stress
def test_a_terminal_of_twenty_columns_gets_words(trace_path):
    terminal = Terminal(trace_path, 20, 10)
    terminal.until("? keys, q quit")
    terminal.press(b"q")

    assert is_restored(terminal)


@pytest.mark.stress
def test_a_terminal_that_cannot_draw_is_printed_on(trace_path):
    surroundings = {"GRADVIZ_PAGER": "cat", "TERM": "dumb"}
    terminal = Terminal(trace_path, 80, 24, "--limit", "1", **surroundings)
    code, output, _ = terminal.end()

    assert code == 0
    assert b"no terminal to draw on: printing as with --plain" in output
    assert b"Event 1 of" in output


def test_only_a_full_screen_loads_what_draws_it(trace_path):
    """No command when it is imported, and not this one where it prints."""
    script = (
        "import sys, click; from gradviz.cli.main import gradviz\n"
        "def load(group):\n"
        "    for name in group.entries:\n"
        "        one = group.get_command(click.Context(group), name)\n"
        "        if isinstance(one, click.Group): load(one)\n"
        "load(gradviz)\n"
        f"try: gradviz(['replay', '--plain', {str(trace_path)!r}])\n"
        "finally: print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    assert {"gradviz.cli.commands.replay", "gradviz.cli.show.show_order"} <= {
        *done.stderr.split()
    }
    assert "textual" not in done.stderr.split()
