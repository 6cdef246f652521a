"""Starting the workers of a program, as processes or threads, and waiting for them."""

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal

from gradviz.distributed.launching.actors import run_actors
from gradviz.distributed.launching.processes import (
    begin_worker,
    check_number,
    run_workers,
)
from gradviz.distributed.launching.threads import run_threads
from gradviz.distributed.messaging.entry import function_in, module_of
from gradviz.distributed.messaging.failures import WorkerFailedError
from gradviz.distributed.transport.rendezvous import Rendezvous
from gradviz.errors import UserError

#: Runs a function of the process that has started this one; see `spawn`.
_PROGRAM: Final = (
    "from gradviz.distributed.launching.launch import run_spawned; run_spawned()"
)

_SPAWNED: Final = "GRADVIZ_WORKERS_FUNCTION"


def spawn(
    fn: Callable[..., object],
    nprocs: int,
    args: Sequence[Any] = (),
    *,
    transport: Literal["local", "inproc", "ray"] = "local",
    folder: str | os.PathLike[str] | None = None,
) -> None:
    """Run ``fn(rank, *args)`` in several processes, each of which can be a worker.

    In each of them ``rpc.init()`` needs no arguments. All of them are waited for, also
    those that go on when another one has failed; what stops the waiting, such as
    Ctrl-C, ends them.

    In a process that is a worker already, which ``gradviz run --workers`` has started,
    nothing is started: `fn` runs, with its rank.

    Args:
        fn: At the top level of a module. That of the program is imported anew as
            ``__mp_main__``, so what only the program should do stands under
            ``if __name__ == "__main__":``.
        nprocs: Number of processes.
        args: Further arguments of `fn`: values that JSON knows.
        transport: ``inproc`` for threads of this process, to try something out; ``ray``
            for actors on the nodes of a Ray cluster, that of ``RAY_ADDRESS`` or one
            that is started here.
        folder: Folder that goes to the nodes of Ray, with the program in it; None for
            the folder of the program. Each worker starts in its copy.

    Raises:
        WorkerFailedError: One did not end well; the first that did not.
        ValueError: No process could find `fn`, or there cannot be so many.
        UserError: It was started as another number of workers, or the cluster of Ray
            cannot be joined.
        MissingToolError: Ray is not installed.

    Source: torch.multiprocessing.spawn.
    """
    if (found := Rendezvous.of_environment(os.environ)) is not None:
        rank, rendezvous = found
        if rendezvous.world_size != nprocs:
            raise UserError(
                f"this program is started as {rendezvous.world_size} workers, and "
                f"wants {nprocs}: use gradviz run --workers {nprocs}"
            )
        fn(rank, *args)
        return
    check_number(nprocs)
    if transport == "inproc":
        run_threads(fn, nprocs, args)
    elif transport == "local":
        _run_processes(fn, nprocs, args)
    elif transport == "ray":
        run_actors(fn, nprocs, args, folder)
    else:
        raise ValueError(
            f"no transport is called {transport!r}: there are 'local', 'inproc' and "
            f"'ray'"
        )


def run_spawned() -> None:
    """Run the function of `spawn`, in one of its processes."""
    told = json.loads(os.environ.pop(_SPAWNED))
    module, name, sys.path[:], sys.argv[:], args = told
    found = Rendezvous.of_environment(os.environ)
    assert found is not None
    rank, rendezvous = found
    begin_worker(rendezvous)
    try:
        function = function_in(module, name)
        function(rank, *args)
    except Exception:  # noqa: BLE001 - whoever waits is told
        traceback = importlib.import_module("traceback")
        rendezvous.tell_error(rank, traceback.format_exc())
        sys.exit(1)


def _run_processes(fn: Callable[..., object], nprocs: int, args: Sequence[Any]) -> None:
    parts = (module_of(fn), fn.__qualname__, sys.path, sys.argv, list(args))
    command = [sys.executable, *_options_of_python(), "-c", _PROGRAM]
    variables = {_SPAWNED: json.dumps(parts)}
    endings = run_workers([command] * nprocs, [variables] * nprocs)
    for rank, exit_code, words, error in endings:
        if exit_code:
            text = f"worker {rank} of {nprocs} {words}" + (error and f":\n\n{error}")
            raise WorkerFailedError(rank, exit_code, text)


def _options_of_python() -> list[str]:
    """Return the options of this Python that a child should have, too."""
    return subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined,no-any-return] # as multiprocessing does
