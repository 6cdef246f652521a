"""``--follow-children``: a trace of its own for each process that the program starts.

Forked ones are told of at once. Others, which start anew, record themselves if they
import gradviz, or PyTorch: variables of the environment ask them to.
"""

import atexit
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from gradviz.capture import Recording
from gradviz.recording_options import RecordingOptions

#: Where a Python that starts finds a module that has it recorded.
_FOLLOWED: Final = Path(__file__).parent / "followed"


class Children:
    """Has the processes recorded that this one and its children start from now on.

    Args:
        path: The trace of this process; those of others are called as it is, with
            the number of their process.
        options: What they are to keep.
        record: Begins a recording into a file.
    """

    def __init__(
        self,
        path: Path,
        options: RecordingOptions,
        record: Callable[[Path], Recording],
    ) -> None:
        self._path = path.absolute()
        self._record = record
        self._since = time.time()
        os.environ["GRADVIZ_TRACE"] = str(self._of("{pid}"))
        os.environ.update(options.variables())
        before = os.environ.get("PYTHONPATH")
        paths = [str(_FOLLOWED), *([before] if before else [])]
        os.environ["PYTHONPATH"] = os.pathsep.join(paths)
        self._own: Recording | None = None
        os.register_at_fork(after_in_child=self._begin)

    def traces(self) -> list[Path]:
        """The traces that other processes have left so far."""
        found = [
            path
            for path in self._path.parent.iterdir()
            if path.name == self._of(path.stem.rpartition(".")[2]).name
            and path.stem.rpartition(".")[2].isdecimal()
            and path.stat().st_mtime >= self._since - 1
        ]
        return sorted(found)

    def _of(self, process: str) -> Path:
        return self._path.with_name(f"{self._path.stem}.{process}{self._path.suffix}")

    def _begin(self) -> None:
        """Record this process, the child of a fork; whatever fails, it goes on."""
        try:
            recording = self._record(self._of(str(os.getpid())))
        except Exception as error:  # noqa: BLE001 - the program has not asked for it
            sys.stderr.write(
                f"gradviz: process {os.getpid()} is not recorded: {error}\n"
            )
            return
        atexit.register(recording.close)
        self._own = recording  # what comes after a fork is held weakly there
        # The children of `multiprocessing` leave by `os._exit`, after this.
        if (util := sys.modules.get("multiprocessing.util")) is not None:
            util.register_after_fork(
                recording, lambda one: util.Finalize(None, one.close, exitpriority=0)
            )
