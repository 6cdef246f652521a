"""Differentiation of computations on several workers, under PyTorch's names."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from gradviz.distributed.rpc import current_worker
from gradviz.ops.variables.variable import Value, Variable


@contextmanager
def context() -> Iterator[int]:
    """Record calls of other workers in a block, for `backward`.

    What is recorded, and the gradients, are forgotten on all workers when it ends.

    Yields:
        The id of the context.

    Raises:
        RuntimeError: The thread is in such a block already, or in no worker.

    Source: torch.distributed.autograd.context.
    """
    container = current_worker().container
    made = container.new_context()
    try:
        yield made.context_id
    finally:
        container.release_context_if_present(made.context_id)


def backward(
    context_id: int,
    roots: Sequence[Variable],
    retain_graph: bool = False,
    timeout: float | None = None,
) -> None:
    """Compute the gradients of `roots` on all workers that took part.

    They are added up in the context, on the worker of each leaf; no ``.grad`` changes.

    Args:
        context_id: Id that `context` has given.
        roots: Tensors of one element.
        retain_graph: Keep what was saved, for another backward.
        timeout: Number of seconds that it may take; None is forever. A tensor that was
            sent and not used has no gradient, for which its sender would wait.

    Raises:
        RuntimeError: There is no such context; a root needs no gradient, is a leaf or
            has several elements; something failed, on whichever worker; it took too
            long.
        TypeError: A root is not a tensor.

    Source: torch.distributed.autograd.backward.
    """
    if isinstance(roots, Variable) or not isinstance(roots, Sequence):
        raise TypeError(
            f"backward(): roots is a {type(roots).__name__}, expected a sequence of "
            f"tensors"
        )
    current_worker().dist_engine.execute(
        context_id, roots, retain_graph=retain_graph, timeout=timeout
    )


def get_gradients(context_id: int) -> dict[Variable, Value]:
    """Return the gradients of a context: for each leaf of this worker, its sum.

    Raises:
        RuntimeError: There is no such context.

    Source: torch.distributed.autograd.get_gradients.
    """
    return current_worker().container.retrieve_context(context_id).gradients()


def debug_info() -> dict[str, int]:
    """Return the numbers of backward passes and contexts of this worker (D11)."""
    return current_worker().dist_engine.debug_info()


__all__ = ["backward", "context", "debug_info", "get_gradients"]
