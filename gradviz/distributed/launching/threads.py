"""Starting the workers of a program as threads, and waiting for them."""

from collections.abc import Callable, Sequence
from functools import partial

from gradviz.distributed import rpc
from gradviz.distributed.calling.worker import CURRENT
from gradviz.distributed.messaging.failures import WorkerFailedError
from gradviz.distributed.messaging.thread_names import thread_name
from gradviz.distributed.transport.inproc import Network
from gradviz.engine.graph.sync import THREADS, Mailbox


def run_threads(
    fn: Callable[..., object], num_workers: int, args: Sequence[object]
) -> None:
    """Run ``fn(rank, *args)`` in several threads, each of which can be a worker.

    Raises:
        WorkerFailedError: One raised; the first that did. All others are waited for.
    """
    network = Network(num_workers)
    endings: Mailbox[tuple[int, BaseException | None]] = THREADS.mailbox()

    def run(rank: int) -> None:
        error: BaseException | None = None
        rpc.OFFERED.set(network.transports[rank])
        try:
            fn(rank, *args)
        except BaseException as raised:  # noqa: BLE001 - whoever waits is told
            error = raised
        finally:
            _leave(network, rank, error)
            endings.put((rank, error))

    for rank in range(num_workers):
        THREADS.spawn(partial(run, rank), thread_name(rank, "main"))
    try:
        found = [endings.get() for _ in range(num_workers)]
    except BaseException:  # such as Ctrl-C
        for rank in range(num_workers):
            network.kill(rank, "the program has been interrupted")
        raise
    for rank, error in found:
        if error is not None:
            words = f"raised {type(error).__name__}: {error}"
            raise WorkerFailedError(
                rank, 1, f"worker {rank} of {num_workers} {words}"
            ) from error


def _leave(network: Network, rank: int, error: BaseException | None) -> None:
    """Release all waits for a worker whose function has ended."""
    how = "ended" if error is None else f"raised {type(error).__name__}: {error}"
    network.kill(rank, f"its function {how}")
    if CURRENT.get() is not None:
        rpc.shutdown(graceful=False)
