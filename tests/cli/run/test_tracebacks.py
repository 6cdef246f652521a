"""Frames that a traceback under ``gradviz run`` has."""

import traceback
from pathlib import Path

import pytest

from gradviz.cli.run.program import _without_watchers
from gradviz.pytorch.watching import importing

WATCHER = str(Path(importing.__file__).with_name("forward_lines.py"))


def frames(*files: str) -> list[str]:
    """The files of a traceback through code of these, the outermost first."""
    call = "raise KeyboardInterrupt"
    scope: dict[str, object] = {}
    for number, file in enumerate(reversed(files)):
        source = f"def call{number}():\n    {call}"
        exec(compile(source, file, "exec"), scope)
        call = f"call{number}()"
    with pytest.raises(KeyboardInterrupt) as caught:
        exec(call, scope)
    left = _without_watchers(caught.value.__traceback__)
    return [one.filename for one in traceback.extract_tb(left)][2:]


@pytest.mark.parametrize(
    "files",
    [
        ("program.py", WATCHER),
        ("program.py", WATCHER, WATCHER, "handler.py"),
        (WATCHER, "program.py", WATCHER),
    ],
)
def test_frames_that_watch_pytorch_are_left_out_wherever_they_are(files):
    assert frames(*files) == [file for file in files if file != WATCHER]
