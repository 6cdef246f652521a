"""Traces of the actors that a program starts with `gradviz.distributed.spawn`.

Each is written on the node of its actor while that runs. When all have ended, a task of
Ray brings it from there, also that of an actor which was killed: up to its last frame.
"""

import contextlib
import importlib
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from gradviz.capture.recording_options import RecordingOptions
from gradviz.capture.session import Recording, record_program
from gradviz.cli.console.notes import note
from gradviz.cli.console.output import check_output, write_output
from gradviz.cli.run.workers import merge_workers, trace_of_worker
from gradviz.errors import GradvizError
from gradviz.program_hooks import around_actors
from gradviz.trace.format.atomic_file import FOR_OWNER

#: Seconds that an actor may take to close its trace: one that is stopped never does.
_CLOSE_SECONDS: Final = 10.0

#: Seconds that traces may take on their way.
_BRING_SECONDS: Final = 300.0

#: The recording of this process, if it is an actor.
_RECORDINGS: Final[list[Recording]] = []


class ActorTraces:
    """Records the actors that the program starts from now on.

    Args:
        path: The trace of this process; those of the actors come beside it.
        options: Options of the recordings.
        force: True if traces may be replaced.

    Attributes:
        parts: The traces of the workers, by rank, that are there when they have ended.
    """

    def __init__(self, path: Path, options: RecordingOptions, *, force: bool) -> None:
        self._path = path.absolute()
        self._options = options
        self._force = force
        self.parts: list[Path] = []
        around_actors.append(self._recorded)

    @contextlib.contextmanager
    def _recorded(self, boxes: Sequence[Any]) -> Iterator[None]:
        """Have actors recorded.

        Raises:
            UserError: There are traces that may not be replaced.
        """
        if self.parts:
            note("workers of a second spawn are not recorded, only those of the first")
            yield
            return
        parts = [trace_of_worker(self._path, rank) for rank in range(len(boxes))]
        for part in parts:
            check_output(part, force=self._force)
        for part in parts:
            part.unlink(missing_ok=True)  # or an old one would be merged with new ones
        self.parts = parts
        ray = importlib.import_module("ray")
        calls = [
            box.run.remote(__name__, begin.__name__, rank, *self._options)
            for rank, box in enumerate(boxes)
        ]
        places = ray.get(calls)
        try:
            yield
        except SystemExit:
            # SIGTERM, as Ray has it, which also sets an alarm: abort after 3 seconds.
            signal.alarm(0)
            raise
        finally:
            calls = [box.run.remote(__name__, end.__name__) for box in boxes]
            ray.wait(calls, num_returns=len(calls), timeout=_CLOSE_SECONDS)
            self._bring(ray, places)

    def merge(self, *, has_own: bool, quiet: bool) -> None:
        """Put them into one, in the place of the trace of this process, or say why not.

        Args:
            has_own: True if there is something in that; then it is kept beside.
            quiet: Say only what went wrong.
        """
        if has_own and self._path.exists():  # a ring may not have been written
            own = self._path.with_name(f"{self._path.stem}.driver{self._path.suffix}")
            self._path.replace(own)
            if not quiet:
                note(f"what the program did itself is in {own}")
        try:
            merge_workers(self.parts, self._path, quiet=quiet)
        except GradvizError as error:
            note(str(error))

    def _bring(self, ray: ModuleType, places: Sequence[tuple[str, str]]) -> None:
        near = importlib.import_module("ray.util.scheduling_strategies")
        brought = [
            ray.remote(take)
            .options(
                num_cpus=0,
                # Where the node is gone another one may have its folder.
                scheduling_strategy=near.NodeAffinitySchedulingStrategy(
                    node, soft=True
                ),
            )
            .remote(file)
            for node, file in places
        ]
        ray.wait(brought, num_returns=len(brought), timeout=_BRING_SECONDS)
        for rank, (part, trace) in enumerate(zip(self.parts, brought, strict=True)):
            try:
                write_output(part, ray.get(trace, timeout=0), FOR_OWNER)
            except (ray.exceptions.RayError, OSError) as error:
                words = str(error).strip().rpartition("\n")[2]
                note(f"warning: the trace of worker {rank} was not brought: {words}")


def begin(box: object, rank: int, *options: str) -> tuple[str, str]:
    """Record this process, which is an actor; its node, and the file there."""
    del box
    os.environ["RANK"] = str(rank)  # as who starts processes tells them
    file = Path(tempfile.mkdtemp(prefix="gradviz-trace-"), "worker.gvt")
    _RECORDINGS.append(record_program(file, RecordingOptions(*options)))
    ray = importlib.import_module("ray")
    return ray.get_runtime_context().get_node_id(), str(file)


def end(box: object) -> None:
    """Close the trace of this process."""
    del box
    _RECORDINGS.pop().close()


def take(file: str) -> bytes:
    """Return the contents of a file of this node, and remove it."""
    data = Path(file).read_bytes()
    shutil.rmtree(Path(file).parent)
    return data
