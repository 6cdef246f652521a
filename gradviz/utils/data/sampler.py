"""The order in which samples of a dataset are taken: iterables of their numbers.

Source: torch/utils/data/sampler.py.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

import numpy as np

from gradviz.ops.conventions.generator import Generator, default_generator

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]

T_co = TypeVar("T_co", covariant=True)


class Sampler(Generic[T_co]):
    """Numbers of samples, again and again; a subclass defines ``__iter__``."""

    def __init__(self, data_source: Sized | None = None) -> None:
        del data_source  # PyTorch once wanted it

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__} does not define __iter__")


class SequentialSampler(Sampler[int]):
    """All samples of a dataset in order."""

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Samples of a dataset in random order.

    Args:
        data_source: The dataset.
        replacement: True if one may come again before all others have come.
        num_samples: Number of samples; as many as there are if None.
        generator: Of random numbers, the default one if not given.

    Raises:
        ValueError: `num_samples` is no positive integer.
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        _check_count(self.num_samples)

    @property
    def num_samples(self) -> int:
        """Number of samples drawn each time."""
        given = self._num_samples
        return len(self.data_source) if given is None else given

    def __iter__(self) -> Iterator[int]:
        count, wanted = len(self.data_source), self.num_samples
        if self.replacement:
            numbers = (generator_of(self.generator).integers(0, count, wanted)).tolist()
            return iter(numbers)
        # One permutation after the other, for more than there are.
        endless = itertools.chain.from_iterable(
            permutation(count, self.generator) for _ in itertools.count()
        )
        return itertools.islice(endless, wanted)

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Some samples of a dataset in random order.

    Args:
        indices: Their numbers.
        generator: Of random numbers, the default one if not given.
    """

    def __init__(
        self, indices: Sequence[int], generator: Generator | None = None
    ) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        order = permutation(len(self.indices), self.generator)
        return (self.indices[place] for place in order)

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Samples drawn by their weights.

    Args:
        weights: One for each sample; they need not sum up to 1.
        num_samples: Number of samples that are drawn.
        replacement: True if one may come again.
        generator: Of random numbers, the default one if not given.

    Raises:
        ValueError: `num_samples` is no positive integer.
    """

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        _check_count(num_samples)
        self.weights = np.asarray([float(one) for one in weights])
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        chances = self.weights / self.weights.sum()
        drawn = generator_of(self.generator).choice(
            len(chances), self.num_samples, replace=self.replacement, p=chances
        )
        return iter(drawn.tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """The numbers of another sampler in batches.

    Args:
        sampler: The other one.
        batch_size: Number of samples in a batch.
        drop_last: True if a last batch that is not full is left out.

    Raises:
        ValueError: `batch_size` is no positive integer.
    """

    def __init__(
        self, sampler: Iterable[int], batch_size: int, drop_last: bool
    ) -> None:
        if batch_size <= 0:
            raise ValueError(
                f"batch_size should be a positive integer value, but got "
                f"batch_size={batch_size}"
            )
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        numbers = iter(self.sampler)
        while batch := list(itertools.islice(numbers, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        full, rest = divmod(length_of(self.sampler), self.batch_size)
        return full + (rest > 0 and not self.drop_last)


def permutation(count: int, generator: Generator | None) -> list[int]:
    """The integers below `count` in random order."""
    order: list[int] = generator_of(generator).permutation(count).tolist()
    return order


def generator_of(generator: Generator | None) -> np.random.Generator:
    """NumPy's generator of `generator`, or of the one that all share."""
    return (generator or default_generator).random


def length_of(sampler: Iterable[Any]) -> int:
    """Return the number of samples that a sampler yields; all if it does not say."""
    return len(sampler) if isinstance(sampler, Sized) else sum(1 for _ in sampler)


def _check_count(num_samples: int) -> None:
    if num_samples <= 0:
        raise ValueError(
            f"num_samples should be a positive integer value, but got "
            f"num_samples={num_samples}"
        )
