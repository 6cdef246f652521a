"""Datasets: samples by their numbers, or one after the other.

Source: torch/utils/data/dataset.py.
"""

import bisect
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic

import numpy as np

from gradviz.ops.conventions.generator import Generator
from gradviz.tensors.tensor import Tensor
from gradviz.utils.data.sampler import T_co, permutation

__all__ = [
    "ChainDataset",
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "StackDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]


class Dataset(Generic[T_co]):
    """Samples by their numbers; a subclass defines ``__getitem__`` and ``__len__``."""

    def __getitem__(self, index: Any) -> T_co:  # noqa: ANN401 - a subclass decides
        raise NotImplementedError(f"{type(self).__name__} does not define __getitem__")

    def __add__(self, other: "Dataset[T_co]") -> "Dataset[T_co]":
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co]):
    """Samples one after the other; a subclass defines ``__iter__``."""

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__} does not define __iter__")

    def __add__(self, other: "Dataset[T_co]") -> "Dataset[T_co]":
        return ChainDataset([self, other])


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


class StackDataset(Dataset[Any]):
    """Samples of several datasets, in tuples, or in dicts if the datasets have names.

    Args:
        *args: The datasets; or by name.
        **kwargs: Their names.

    Raises:
        ValueError: There are none, their lengths differ, or only some have names.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - by number
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or ``dict``- (via "
                "``kwargs``) like input/output, but both types are given."
            )
        self.datasets: tuple[Any, ...] | dict[str, Any] = args or kwargs
        every = list(args or kwargs.values())
        if not every:
            raise ValueError("At least one dataset should be passed")
        self._length = len(every[0])
        if any(len(one) != self._length for one in every):
            raise ValueError("Size mismatch between datasets")

    def __getitem__(self, index: Any) -> Any:  # noqa: ANN401 - as the datasets
        if isinstance(self.datasets, dict):
            return {name: one[index] for name, one in self.datasets.items()}
        return tuple(one[index] for one in self.datasets)

    def __len__(self) -> int:
        return self._length


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


class ConcatDataset(Dataset[T_co]):
    """Several datasets one after the other.

    Args:
        datasets: The datasets; each has a length.

    Raises:
        ValueError: There are none.
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise ValueError("datasets should not be an empty iterable")
        lengths = map(len, self.datasets)
        self.cumulative_sizes = list(itertools.accumulate(lengths))

    def __getitem__(self, index: int) -> T_co:
        number = index + len(self) if index < 0 else index
        if not 0 <= number < len(self):
            raise IndexError(f"no sample {index} among {len(self)}")
        which = bisect.bisect_right(self.cumulative_sizes, number)
        before = self.cumulative_sizes[which - 1] if which else 0
        sample: T_co = self.datasets[which][number - before]
        return sample

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


class ChainDataset(IterableDataset[T_co]):
    """Several datasets, read to their ends one after the other."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[T_co]:
        return itertools.chain.from_iterable(self.datasets)


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
    order = permutation(len(dataset), generator)
    ends = np.cumsum([int(one) for one in sizes]).tolist()
    return [
        Subset(dataset, order[begin:end])
        for begin, end in zip([0, *ends], ends, strict=False)
    ]
