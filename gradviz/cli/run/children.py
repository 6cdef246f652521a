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

from gradviz.capture.recording_options import RecordingOptions
from gradviz.capture.session import Recording
from gradviz.posix import at_fork

#: Folder of a module that has a new Python process recorded.
FOLLOWED: Final = Path(__file__).parent / "followed"


#: Modules of Python that are loaded where a program starts another one of its kind.
_STARTERS: Final = frozenset(
    {"multiprocessing.popen_spawn_posix", "multiprocessing.popen_forkserver"}
)
#: Audit events of a process that starts another one.
_STARTS: Final = frozenset({"os.fork", "subprocess.Popen"})


def follow_by_environment(trace: str) -> None:
    """Set the variables that ask each Python that starts to record itself.

    Args:
        trace: As ``GRADVIZ_TRACE`` has it.
    """
    os.environ["GRADVIZ_TRACE"] = trace
    before = os.environ.get("PYTHONPATH")
    paths = [str(FOLLOWED), *([before] if before else [])]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)


class Unfollowed:
    """Finds out whether a program starts processes that may have passes of their own.

    These are forked ones and those of another Python, as far as Python's audit events
    tell; listening to these cannot be ended.
    """

    def __init__(self) -> None:
        self._has_started = False

        # A function, for Python calls a method at three times the cost: each node that
        # is recorded looks at the frame that made it, which is an event, too.
        def hear(event: str, args: tuple[object, ...]) -> None:
            if event in _STARTS:
                self._hear(event, args)

        sys.addaudithook(hear)

    @property
    def has_started(self) -> bool:
        """True if there was one so far."""
        return self._has_started or not _STARTERS.isdisjoint(sys.modules)

    def _hear(self, event: str, args: tuple[object, ...]) -> None:
        if event == "os.fork":
            self._has_started = True
        elif not self._has_started:
            words = args[1] if isinstance(args[1], list | tuple) else (args[1],)
            self._has_started = any(
                "python" in str(word) or "torchrun" in str(word)
                for word in (args[0], *words)
            )


class Children:
    """Has the processes recorded that this one and its children start from now on.

    Args:
        path: The trace of this process; those of others are called as it is, with
            the number of their process.
        options: Recording options: the data that they are to keep.
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
        follow_by_environment(str(self._of("{pid}")))
        os.environ.update(options.variables())
        self._own: Recording | None = None
        at_fork(after_in_child=self._begin)

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
