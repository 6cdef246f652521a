"""Data in batches: what of ``torch.utils.data`` a training loop on one machine uses."""

import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from gradviz.ops.recording.generator import Generator, default_generator
from gradviz.ops.shapes.joining import stack
from gradviz.tensors.creation import as_tensor, tensor
from gradviz.tensors.tensor import Tensor

T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """Samples by their numbers; a subclass defines ``__getitem__`` and ``__len__``."""

    def __getitem__(self, index: Any) -> T_co:  # noqa: ANN401 - a subclass decides
        raise NotImplementedError(f"{type(self).__name__} does not define __getitem__")


class IterableDataset(Dataset[T_co]):
    """Samples one after the other; a subclass defines ``__iter__``."""

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__} does not define __iter__")


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """A row of each of several tensors.

    Args:
        *tensors: Of the same first dimension.

    Raises:
        AssertionError: They are not.
    """

    def __init__(self, *tensors: Tensor) -> None:
        if any(len(one) != len(tensors[0]) for one in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:  # noqa: ANN401 - any index
        return tuple(one[index] for one in self.tensors)

    def __len__(self) -> int:
        return len(self.tensors[0])


class Subset(Dataset[T_co]):
    """Some samples of a dataset.

    Args:
        dataset: The dataset.
        indices: Their numbers.
    """

    def __init__(self, dataset: Dataset[T_co], indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: int) -> T_co:
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Any,  # noqa: ANN401 - with a length
    lengths: Sequence[float],
    generator: Generator | None = None,
) -> list[Subset[Any]]:
    """A dataset in random parts.

    Args:
        dataset: The dataset.
        lengths: Of the parts; or fractions, of which the first ones get what is left.
        generator: Of random numbers, the default one if not given.

    Raises:
        ValueError: The lengths do not sum up to that of the dataset.
    """
    sizes = list(lengths)
    if sum(sizes) <= 1 and all(0 <= one <= 1 for one in sizes):
        sizes = [int(one * len(dataset)) for one in sizes]
        for index in range(len(dataset) - int(sum(sizes))):
            sizes[index % len(sizes)] += 1
    if sum(sizes) != len(dataset):
        raise ValueError(
            "Sum of input lengths does not equal the length of the input dataset!"
        )
    order = _permutation(len(dataset), generator)
    ends = np.cumsum([int(one) for one in sizes]).tolist()
    return [
        Subset(dataset, order[begin:end])
        for begin, end in zip([0, *ends], ends, strict=False)
    ]


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


class DataLoader(Generic[T_co]):
    """Batches of a dataset, again and again.

    Args:
        dataset: Samples by number, or one after the other.
        batch_size: How many make a batch; None for samples as they are.
        shuffle: Whether they come in another order each time.
        sampler: Their numbers in order, instead of `shuffle`.
        batch_sampler: The numbers of each batch, instead of the above.
        num_workers: Accepted; samples are read by the calling thread.
        collate_fn: Makes a batch of samples; `default_collate` if not given.
        pin_memory: Accepted; changes nothing.
        drop_last: Whether a last batch that is not full is left out.
        generator: Of random numbers, the default one if not given.

    Raises:
        ValueError: Arguments exclude each other.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - PyTorch's
        self,
        dataset: Any,  # noqa: ANN401 - samples by number, or an iterable
        batch_size: int | None = 1,
        shuffle: bool = False,
        sampler: Iterable[int] | None = None,
        batch_sampler: Iterable[Sequence[int]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        generator: Generator | None = None,
    ) -> None:
        del num_workers, pin_memory
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
        self.shuffle = shuffle
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.collate_fn = collate_fn or default_collate
        self.drop_last = drop_last
        self.generator = generator

    def __iter__(self) -> Iterator[Any]:
        if self.batch_sampler is not None:
            for numbers in self.batch_sampler:
                yield self.collate_fn([self.dataset[number] for number in numbers])
            return
        samples = iter(self._samples())
        if self.batch_size is None:
            yield from samples
            return
        while batch := list(itertools.islice(samples, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield self.collate_fn(batch)

    def __len__(self) -> int:
        """How many batches there are."""
        if self.batch_sampler is not None:
            return operator.length_hint(self.batch_sampler)
        count = len(self.dataset if self.sampler is None else list(self.sampler))
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
            order = (
                _permutation(count, self.generator) if self.shuffle else range(count)
            )
        return (self.dataset[int(number)] for number in order)


def _permutation(count: int, generator: Generator | None) -> list[int]:
    source = default_generator if generator is None else generator
    return [int(one) for one in source.random.permutation(count)]
