"""Starting the workers of a program as actors of Ray, and waiting for them."""

import contextlib
import json
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from gradviz.distributed import rpc
from gradviz.distributed.calling.worker import CURRENT
from gradviz.distributed.messaging.entry import function_in, module_of, program_folder
from gradviz.distributed.messaging.failures import WorkerFailedError
from gradviz.distributed.transport.ray import (
    RayBox,
    RayTransport,
    open_boxes,
    ray_module,
)
from gradviz.engine.graph.sync import THREADS, Empty
from gradviz.program_hooks import around_actors

#: Seconds between two questions whether actors that have not ended ever will.
_LOOK_SECONDS: Final = 2.0

#: Time that actors may be silent, as they may be for each other.
_SILENT_SECONDS: Final = 15.0

#: Time that an actor's output may be on its way to this process.
_PRINTED_SECONDS: Final = 1.5


def run_actors(
    fn: Callable[..., object],
    num_workers: int,
    args: Sequence[object],
    folder: str | os.PathLike[str] | None = None,
) -> None:
    """Run ``fn(rank, *args)`` in several actors, each of which can be a worker.

    Args:
        fn: At the top level of a module.
        num_workers: Number of actors.
        args: Further arguments of `fn`: values that JSON knows.
        folder: As for `open_boxes`.

    Raises:
        MissingToolError: Ray is not installed.
        UserError: The cluster cannot be joined.
        ValueError: No process could find `fn`.
        WorkerFailedError: One did not end well; the first. All others are waited for.
    """
    ray = ray_module()
    program = _program(fn, args, folder)
    was_started = ray.is_initialized()
    try:
        boxes = open_boxes(num_workers, folder)
        try:
            with contextlib.ExitStack() as told:
                for around in around_actors:
                    told.enter_context(around(boxes))
                failures = _run_all(ray, boxes, program)
        finally:
            for box in boxes:
                ray.kill(box)
        if not was_started:
            with contextlib.suppress(Empty):
                THREADS.mailbox().get(timeout=_PRINTED_SECONDS)
    finally:
        if not was_started:
            ray.shutdown()
    for rank, words in failures:
        raise WorkerFailedError(rank, 1, f"worker {rank} of {num_workers} {words}")


def start_actors(
    fn: Callable[..., object],
    boxes: Sequence[Any],
    args: Sequence[object] = (),
    folder: str | os.PathLike[str] | None = None,
) -> list[Any]:
    """Run ``fn(rank, *args)`` in all boxes but the first: this process is worker 0.

    It becomes that by ``rpc.init(transport=RayTransport(0, boxes))``.

    Args:
        fn: At the top level of a module, as for `gradviz.distributed.spawn`.
        boxes: From `open_boxes`. Their processes end when nobody has them any more.
        args: Further arguments of `fn`: values that JSON knows.
        folder: Folder that `open_boxes` was given.

    Returns:
        For each worker from 1 a reference of Ray's to how it has failed: an empty text
        if it has not.

    Raises:
        ValueError: No process could find `fn`.
    """
    program = _program(fn, args, folder)
    return [_start(boxes, rank, program) for rank in range(1, len(boxes))]


def _program(
    fn: Callable[..., object],
    args: Sequence[object],
    folder: str | os.PathLike[str] | None,
) -> str:
    """Setup of an actor that is to run a function.

    The file of a program is named as it is called within the folder that goes to the
    nodes. Its own path is for nodes that have got no folder, since the program has
    started Ray itself.
    """
    module = module_of(fn)
    within = ""
    if os.sep in module:
        root = program_folder() if folder is None else Path(folder)
        if Path(module).is_relative_to(root.resolve()):
            within = str(Path(module).relative_to(root.resolve()))
    return json.dumps([module, within, fn.__qualname__, sys.argv, list(args)])


def _module_here(module: str, within: str) -> str:
    """The module, or the file of the program in the copy that this node has got."""
    if within and Path(within).is_file():  # an actor starts in its copy
        module = str(Path(within).resolve())
    if os.sep in module:
        sys.path.insert(0, str(Path(module).parent))
    return module


def _start(boxes: Sequence[Any], rank: int, program: str) -> object:
    """Have one worker begin; Ray's reference to its end."""
    run = boxes[rank].run
    started: object = run.remote(__name__, run_in_actor.__name__, rank, boxes, program)
    return started


def _run_all(
    ray: ModuleType, boxes: Sequence[Any], program: str
) -> list[tuple[int, str]]:
    """Run a program in all boxes; which have failed and how, the first one first."""
    running = {_start(boxes, rank, program): rank for rank in range(len(boxes))}
    failures = []
    while running:
        ended, _ = ray.wait([*running], num_returns=1, timeout=_LOOK_SECONDS)
        for one in ended:
            rank = running.pop(one)
            try:
                words = ray.get(one)
            except ray.exceptions.RayError as error:
                words = f"is gone: {error}"
            if words:
                failures.append((rank, words))
        if not ended and _are_silent(ray, [boxes[rank] for rank in running.values()]):
            words = f"gave no sign of life for {_SILENT_SECONDS:g} s"
            return [*failures, *((rank, words) for rank in running.values())]
    return failures


def _are_silent(ray: ModuleType, boxes: Sequence[Any]) -> bool:
    """Return whether none of some actors answers: stopped, they never end."""
    answers = [box.ping.remote() for box in boxes]
    answered, _ = ray.wait(answers, num_returns=1, timeout=_SILENT_SECONDS)
    return not answered


def run_in_actor(box: RayBox, rank: int, boxes: Sequence[Any], program: str) -> str:
    """Run an actor's program on a thread; return its error."""
    module, within, name, sys.argv[:], args = json.loads(program)
    transport = RayTransport(rank, boxes, box.mail.get)
    rpc.OFFERED.set(transport)
    words = ""
    try:
        function_in(_module_here(module, within), name)(rank, *args)
    except BaseException as error:  # noqa: BLE001 - whoever waits is told
        words = f"has failed:\n\n{traceback.format_exc()}"
        reason = f"its function raised {type(error).__name__}: {error}"
        transport.vanish(reason, timeout=1.0)
    if CURRENT.get() is not None:
        rpc.shutdown(graceful=False)
    transport.vanish("its function has ended", timeout=1.0)
    return words
