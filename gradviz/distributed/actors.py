"""Starting the workers of a program as actors of Ray, and waiting for them."""

import contextlib
import json
import traceback
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, Final

from gradviz.actor_hooks import around_actors
from gradviz.distributed import rpc
from gradviz.distributed.entry import function_in, module_of
from gradviz.distributed.failures import WorkerFailedError
from gradviz.distributed.transport.ray import (
    RayBox,
    RayTransport,
    open_boxes,
    ray_module,
)
from gradviz.distributed.worker import CURRENT
from gradviz.engine.sync import THREADS, Empty

#: How often it is asked whether those that have not ended yet ever will.
_LOOK_SECONDS: Final = 2.0

#: How long actors may be silent, as they may be for each other.
_SILENT_SECONDS: Final = 15.0

#: How long what an actor prints may be on its way to this process.
_PRINTED_SECONDS: Final = 1.5


def run_actors(
    fn: Callable[..., object], num_workers: int, args: Sequence[object]
) -> None:
    """Run ``fn(rank, *args)`` in several actors, each of which can be a worker.

    Raises:
        MissingToolError: Ray is not installed.
        UserError: The cluster cannot be joined.
        ValueError: No process could find `fn`.
        WorkerFailedError: One did not end well; the first. All others are waited for.
    """
    ray = ray_module()
    program = _program(fn, args)
    was_started = ray.is_initialized()
    try:
        boxes = open_boxes(num_workers)
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
    fn: Callable[..., object], boxes: Sequence[Any], args: Sequence[object] = ()
) -> list[Any]:
    """Run ``fn(rank, *args)`` in all boxes but the first: this process is worker 0.

    It becomes that by ``rpc.init(transport=RayTransport(0, boxes))``.

    Args:
        fn: At the top level of a module, as for `gradviz.distributed.spawn`.
        boxes: From `open_boxes`. Their processes end when nobody has them any more.
        args: What it is given besides: what JSON knows.

    Returns:
        For each worker from 1 a reference of Ray's to how it has failed: an empty text
        if it has not.

    Raises:
        ValueError: No process could find `fn`.
    """
    program = _program(fn, args)
    return [_start(boxes, rank, program) for rank in range(1, len(boxes))]


def _program(fn: Callable[..., object], args: Sequence[object]) -> str:
    return json.dumps([module_of(fn), fn.__qualname__, list(args)])


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
    """Whether none of some actors answers: they are stopped, and would never end."""
    answers = [box.ping.remote() for box in boxes]
    answered, _ = ray.wait(answers, num_returns=1, timeout=_SILENT_SECONDS)
    return not answered


def run_in_actor(box: RayBox, rank: int, boxes: Sequence[Any], program: str) -> str:
    """Run what `run_actors` was given, on a thread of an actor; how it has failed."""
    module, name, args = json.loads(program)
    transport = RayTransport(rank, boxes, box.mail.get)
    rpc.OFFERED.set(transport)
    words = ""
    try:
        function_in(module, name)(rank, *args)
    except BaseException as error:  # noqa: BLE001 - whoever waits is told
        words = f"has failed:\n\n{traceback.format_exc()}"
        reason = f"its function raised {type(error).__name__}: {error}"
        transport.vanish(reason, timeout=1.0)
    if CURRENT.get() is not None:
        rpc.shutdown(graceful=False)
    transport.vanish("its function has ended", timeout=1.0)
    return words
