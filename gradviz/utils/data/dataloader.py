"""Data in batches.

Source: torch/utils/data/dataloader.py.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic

import numpy as np

from gradviz.ops.conventions.generator import Generator
from gradviz.ops.shapes.joining import stack
from gradviz.tensors.creation.from_data import as_tensor, tensor
from gradviz.tensors.tensor import Tensor
from gradviz.utils.data.dataset import IterableDataset
from gradviz.utils.data.sampler import (
    T_co,
    length_of,
    permutation,
)

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]


def default_collate(batch: Sequence[Any]) -> Any:  # noqa: ANN401 - as the samples
    """Samples as one batch: tensors stacked, tuples and dicts part by part.

    Raises:
        TypeError: They are nothing that can be.
    """
    match batch[0]:
        case Tensor():
            return stack(list(batch))
        case np.ndarray():
            return as_tensor(np.stack(batch))
        case bool() | int() | float() | np.generic():
            return tensor(np.asarray(batch))
        case str() | bytes():
            return list(batch)
        case Mapping() as first:
            return {key: default_collate([one[key] for one in batch]) for key in first}
        case tuple() | list() as first:
            if any(len(one) != len(first) for one in batch):
                raise RuntimeError(
                    "each element in list of batch should be of equal size"
                )
            return [default_collate(part) for part in zip(*batch, strict=True)]
        case other:
            raise TypeError(
                f"default_collate: batch must contain tensors, numpy arrays, numbers, "
                f"dicts or lists; found {type(other)}"
            )


def default_convert(data: Any) -> Any:  # noqa: ANN401 - of any type
    """A sample with its arrays as tensors, and all else as it is."""
    match data:
        case np.ndarray() | np.generic():
            return as_tensor(np.asarray(data))
        case Mapping():
            return {key: default_convert(one) for key, one in data.items()}
        case tuple() | list():
            return [default_convert(one) for one in data]
        case _:
            return data


def get_worker_info() -> None:
    """Return the worker that reads the samples: None, for there are none."""


class DataLoader(Generic[T_co]):
    """Batches of a dataset, again and again.

    Args:
        dataset: Samples by number, or one after the other.
        batch_size: Number of samples in a batch; None for samples as they are.
        shuffle: True if they come in another order each time.
        sampler: Their numbers in order, instead of `shuffle`.
        batch_sampler: The numbers of each batch, instead of the above.
        num_workers: Accepted; samples are read by the calling thread.
        collate_fn: Makes a batch of samples; `default_collate` if not given, or
            `default_convert` of a sample if they come as they are.
        pin_memory: Accepted; changes nothing.
        drop_last: True if a last batch that is not full is left out.
        timeout: Accepted; no worker is waited for.
        worker_init_fn: Accepted; there is no worker to call it.
        multiprocessing_context: Accepted; no process is started.
        generator: Of random numbers, the default one if not given.
        prefetch_factor: Accepted; nothing is read in advance.
        persistent_workers: Accepted; there are none.
        pin_memory_device: Accepted; changes nothing.
        in_order: Accepted; batches always come in order.

    Raises:
        ValueError: Arguments exclude each other, or a number is negative.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - PyTorch's
        self: "DataLoader[Any]",  # of what `collate_fn` makes, which nobody can know
        dataset: Any,  # noqa: ANN401 - samples by number, or an iterable
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[int] | None = None,
        batch_sampler: Iterable[Sequence[int]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: object = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        del worker_init_fn, multiprocessing_context, prefetch_factor
        del persistent_workers, pin_memory_device, in_order
        if num_workers < 0:
            raise ValueError(
                "num_workers option should be non-negative; use num_workers=0 to "
                "disable multiprocessing."
            )
        if timeout < 0:
            raise ValueError("timeout option should be non-negative")
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None and (
            batch_size != 1 or shuffle or sampler is not None or drop_last
        ):
            raise ValueError(
                "batch_sampler option is mutually exclusive with batch_size, shuffle, "
                "sampler, and drop_last"
            )
        if batch_size is not None and batch_size <= 0:
            raise ValueError(
                f"batch_size should be a positive integer value, but got "
                f"batch_size={batch_size}"
            )
        self.dataset = dataset
        self.batch_size = batch_size
        self.num_workers = num_workers
        self.pin_memory = pin_memory
        self.timeout = timeout
        self.shuffle = bool(shuffle)
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.collate_fn = collate_fn or (
            default_convert if batch_size is None else default_collate
        )
        self.drop_last = drop_last
        self.generator = generator

    def __iter__(self) -> Iterator[Any]:
        if self.batch_sampler is not None:
            for numbers in self.batch_sampler:
                yield self.collate_fn([self.dataset[number] for number in numbers])
            return
        samples = iter(self._samples())
        if self.batch_size is None:
            yield from map(self.collate_fn, samples)
            return
        while batch := list(itertools.islice(samples, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield self.collate_fn(batch)

    def __len__(self) -> int:
        """Return the number of batches."""
        if self.batch_sampler is not None:
            return length_of(self.batch_sampler)
        count = length_of(self.dataset if self.sampler is None else self.sampler)
        if self.batch_size is None:
            return count
        full, rest = divmod(count, self.batch_size)
        return full + (rest > 0 and not self.drop_last)

    def _samples(self) -> Iterable[Any]:
        if isinstance(self.dataset, IterableDataset):
            return self.dataset
        order = self.sampler
        if order is None:
            count = len(self.dataset)
            order = permutation(count, self.generator) if self.shuffle else range(count)
        return (self.dataset[int(number)] for number in order)
