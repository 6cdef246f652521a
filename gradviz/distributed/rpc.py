"""Calling functions on other workers, under PyTorch's names.

Values are copied: arguments on their way there, results on their way back. Inside of
`gradviz.distributed.autograd.context` both are part of one graph.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Final

from gradviz.distributed.calling.calls import WorkerInfo
from gradviz.distributed.calling.reports import worker_began, worker_ended, worker_ends
from gradviz.distributed.calling.rref import RRef
from gradviz.distributed.calling.worker import CURRENT, RpcWorker
from gradviz.distributed.messaging.failures import (
    PeerDownError,
    RemoteError,
    RpcError,
    RpcTimeoutError,
)
from gradviz.distributed.messaging.future import Future
from gradviz.distributed.messaging.registry import register
from gradviz.distributed.messaging.values import ValueNotSentError
from gradviz.distributed.transport.base import Transport
from gradviz.distributed.transport.local import LocalTransport
from gradviz.distributed.transport.rendezvous import Rendezvous
from gradviz.engine import default_engine
from gradviz.locks import SafeLock

#: Seconds that a call may take, unless it says otherwise. Source:
#: torch/csrc/distributed/rpc/rpc_agent.h, kDefaultRpcTimeoutSeconds.
DEFAULT_TIMEOUT: Final = 60.0

#: Transport that `init` takes if it is given none: that of the worker that the calling
#: thread was started to be.
OFFERED: Final[ContextVar[Transport | None]] = ContextVar(
    "gradviz.distributed.transport", default=None
)

#: All workers of this process, in order of `init`. Guarded by the lock.
_WORKERS: Final[list[RpcWorker]] = []
_LOCK: Final = SafeLock()


def init(
    name: str | None = None,
    rank: int | None = None,
    world_size: int | None = None,
    *,
    transport: Transport | None = None,
    timeout: float | None = DEFAULT_TIMEOUT,
    patience: float | None = None,
) -> None:
    """Make the calling thread, or this process, a worker; wait for all others.

    Args:
        name: Name that others may call it by; ``worker`` and its rank, if None.
        rank: Its number, from 0; that of the transport, if None.
        world_size: Number of workers; likewise.
        transport: Its way to them. None for that of who has started it:
            `gradviz.distributed.spawn` or ``gradviz run --workers``.
        timeout: Number of seconds that the others may take to come.
        patience: Number of seconds that another worker may give no sign of life, until
            this one takes it for dead. None: three heartbeats, which are 6 seconds
            between processes of one machine and 15 over Ray; but 300 if its process is
            on this machine and seems to run, as in a long call of C code that holds the
            interpreter's lock.

    Raises:
        RuntimeError: It is one already; or there is no transport, and nothing has
            started this process as a worker.
        UserError: The environment says what cannot be.
        ValueError: The transport is another worker's; two have the same name; no worker
            could be that patient.
        RpcError: Another one did not come.
    """
    if CURRENT.get() is not None:
        raise RuntimeError(
            f"RPC is already initialized: this thread is one of {CURRENT.get().info}"  # type: ignore[union-attr]  # asked above
        )
    if patience is not None and not patience > 0:
        raise ValueError(f"patience is {patience:g} s: expected more than 0")
    found = (rank, world_size)
    transport = OFFERED.get() if transport is None else transport
    if transport is None:
        own_rank, rendezvous = _surroundings()
        _check_rank((own_rank, rendezvous.world_size), found)
        transport = LocalTransport(own_rank, rendezvous)
    else:
        _check_rank((transport.rank, transport.world_size), found)
    transport.patience_seconds = patience
    name = f"worker{transport.rank}" if name is None else name
    worker = RpcWorker(name, transport, default_engine())
    try:
        worker.meet(timeout)
        worker_began(name, transport, worker.launch)
    except BaseException:
        worker.close()
        raise
    CURRENT.set(worker)
    with _LOCK:
        _WORKERS.append(worker)


def shutdown(graceful: bool = True, timeout: float | None = DEFAULT_TIMEOUT) -> None:
    """Stop being a worker.

    Args:
        graceful: Wait until all others stop as well; what they ask is answered till
            then.
        timeout: Number of seconds to wait for them.

    Raises:
        RuntimeError: It is none.
        RpcError: They did not stop in time.
    """
    worker = current_worker()
    try:
        if graceful:
            worker_ends(worker.transport)
            worker.leave(timeout)
    finally:
        worker.close()
        worker_ended(worker.info.id)
        if CURRENT.get() is worker:
            CURRENT.set(None)
        with _LOCK:
            _WORKERS.remove(worker)


def current_worker() -> RpcWorker:
    """The worker that the calling thread is one of.

    In a process that is one worker, that is each of its threads.

    Raises:
        RuntimeError: It is none.
    """
    worker = CURRENT.get()
    if worker is not None:
        return worker
    with _LOCK:
        if len(_WORKERS) == 1:
            return _WORKERS[0]
    raise RuntimeError(
        "RPC has not been initialized. Call gradviz.distributed.rpc.init first."
    )


def get_worker_info(worker_name: str | None = None) -> WorkerInfo:
    """Name and rank of a worker; of the calling one, if none is named.

    Raises:
        RuntimeError: There is no such worker.
    """
    worker = current_worker()
    if worker_name is None:
        return worker.info
    return worker.infos[worker.resolve(worker_name)]


def rpc_sync(
    to: str | int | WorkerInfo,
    func: Callable[..., Any] | str,
    args: Sequence[object] = (),
    kwargs: Mapping[str, object] | None = None,
    timeout: float | None = DEFAULT_TIMEOUT,
) -> Any:  # noqa: ANN401 - of any type
    """Call a function on another worker, and return its result.

    Args:
        to: The worker.
        func: A registered function, or its name.
        args: Its arguments: tensors, arrays, plain values, references, and lists,
            tuples and dicts of them.
        kwargs: Its keyword arguments.
        timeout: Maximum number of seconds; None is forever.

    Raises:
        RuntimeError: There is no such worker.
        ValueNotSentError: Something cannot be sent, or the function is not registered.
        RemoteError: The function raised; a `ValueError` there is one here, too.
        RpcError: No answer came.
    """
    return rpc_async(to, func, args, kwargs, timeout).wait()


def rpc_async(
    to: str | int | WorkerInfo,
    func: Callable[..., Any] | str,
    args: Sequence[object] = (),
    kwargs: Mapping[str, object] | None = None,
    timeout: float | None = DEFAULT_TIMEOUT,
) -> Future[Any]:
    """Call a function like `rpc_sync`, and return the future of its result."""
    worker = current_worker()
    dst = worker.resolve(to)
    return worker.calls.call(dst, func, args, kwargs or {}, timeout=timeout)


def remote(
    to: str | int | WorkerInfo,
    func: Callable[..., Any] | str,
    args: Sequence[object] = (),
    kwargs: Mapping[str, object] | None = None,
    timeout: float | None = DEFAULT_TIMEOUT,
) -> RRef:
    """Call a function like `rpc_async`; return a reference to its result there."""
    worker = current_worker()
    dst = worker.resolve(to)
    rref = worker.references.new(dst)
    rref.created = worker.calls.call(
        dst, func, args, kwargs or {}, timeout=timeout, rref=rref.number
    )
    return rref


def _surroundings() -> tuple[int, Rendezvous]:
    """Return this process's rank and rendezvous from the environment."""
    found = Rendezvous.of_environment(os.environ)
    if found is None:
        raise RuntimeError(
            "nothing has started this process as a worker: start the program with "
            "'gradviz run --workers N', or its workers with gradviz.distributed.spawn, "
            "or give init a transport"
        )
    return found


def _check_rank(known: tuple[int, int], given: tuple[int | None, int | None]) -> None:
    rank, world_size = (
        real if one is None else one for real, one in zip(known, given, strict=True)
    )
    if known != (rank, world_size):
        raise ValueError(
            f"the transport is that of worker {known[0]} of {known[1]}, not of worker "
            f"{rank} of {world_size}"
        )


__all__ = [
    "DEFAULT_TIMEOUT",
    "Future",
    "PeerDownError",
    "RRef",
    "RemoteError",
    "RpcError",
    "RpcTimeoutError",
    "ValueNotSentError",
    "WorkerInfo",
    "current_worker",
    "get_worker_info",
    "init",
    "register",
    "remote",
    "rpc_async",
    "rpc_sync",
    "shutdown",
]
