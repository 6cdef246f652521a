"""Making tensors of random numbers.

Differs: the numbers are NumPy's, not those of PyTorch for the same seed.
"""

from typing import Any, Unpack

import numpy as np

from gradviz.backends.base import copy_to
from gradviz.backends.device import CPU
from gradviz.ops.elementwise.arithmetic import add
from gradviz.ops.recording.generator import Generator, default_generator
from gradviz.ops.recording.promotion import get_default_dtype
from gradviz.ops.recording.variable import Variable
from gradviz.tensors.creation import Options, Size, lengths, make_default, make_like
from gradviz.tensors.tensor import Tensor


def manual_seed(seed: int) -> Generator:
    """Start the random numbers anew; returns their generator."""
    return default_generator.manual_seed(seed)


def initial_seed() -> int:
    """The seed that `manual_seed` was given last."""
    return default_generator.initial_seed()


def seed() -> int:
    """Start the random numbers anew from a seed that nobody chose; returns it."""
    return default_generator.seed()


def get_rng_state() -> Any:  # noqa: ANN401 - as the generator keeps it
    """What `set_rng_state` takes to draw the same numbers again."""
    return default_generator.get_state()


def set_rng_state(new_state: Any) -> None:  # noqa: ANN401 - as the generator keeps it
    """Go on from where `get_rng_state` was called."""
    default_generator.set_state(new_state)


def randn(*size: Size, **options: Unpack[Options]) -> Tensor:
    """Normally distributed numbers of mean 0 and variance 1."""
    return _drawn(_random(options).standard_normal(lengths(size)), options)


def rand(*size: Size, **options: Unpack[Options]) -> Tensor:
    """Uniformly distributed numbers in ``[0, 1)``."""
    return _drawn(_random(options).random(lengths(size)), options)


def randint(*bounds: Any, size: Size = None, **options: Unpack[Options]) -> Tensor:  # noqa: ANN401 - integers, then a size
    """Uniformly distributed integers: ``randint(low, high, size)``.

    Args:
        *bounds: The lowest (0 if left out), the one above the highest, the shape.
        size: The shape, by name.
        **options: See `Options`.

    Raises:
        RuntimeError: There is no integer between the bounds.
    """
    if size is None:
        *bounds_only, size = bounds
    else:
        bounds_only = list(bounds)
    low, high = (0, *bounds_only)[-2:]
    low = options.pop("low", low)  # type: ignore[typeddict-item]
    if low >= high:
        raise RuntimeError(
            f"random_ expects 'from' to be less than 'to', but got from={low} >= "
            f"to={high}"
        )
    drawn = _random(options).integers(low, high, lengths((size,)))
    return make_default(np.asarray(drawn), options)


def randperm(n: int, **options: Unpack[Options]) -> Tensor:
    """The integers from 0 to ``n - 1`` in random order."""
    return make_default(_random(options).permutation(n), options)


def rand_like(input: Tensor, **options: Unpack[Options]) -> Tensor:  # noqa: A002 - PyTorch's name
    """As `rand`, with the shape, dtype and device of `input`."""
    return _like(input, _random(options).random(input.array.shape), options)


def randn_like(input: Tensor, **options: Unpack[Options]) -> Tensor:  # noqa: A002 - PyTorch's name
    """As `randn`, with the shape, dtype and device of `input`."""
    return _like(input, _random(options).standard_normal(input.array.shape), options)


def randint_like(
    input: Tensor,  # noqa: A002 - PyTorch's name
    low: int,
    high: int | None = None,
    **options: Unpack[Options],
) -> Tensor:
    """As `randint`, with the shape, dtype and device of `input`."""
    bounds = (0, low) if high is None else (low, high)
    return _like(input, _random(options).integers(*bounds, input.array.shape), options)


def normal(
    mean: Any,  # noqa: ANN401 - a number or a tensor
    std: Any = 1.0,  # noqa: ANN401 - a number or a tensor
    size: Size = None,
    **options: Unpack[Options],
) -> Tensor:
    """Normally distributed numbers.

    Args:
        mean: Of each element, or of all.
        std: Likewise the standard deviation.
        size: The shape, if both are numbers.
        **options: See `Options`.

    Raises:
        RuntimeError: A standard deviation is negative, or shapes do not broadcast.
    """
    if isinstance(std, Tensor):
        if bool((std < 0).any()):
            raise RuntimeError("normal expects all elements of std >= 0.0")
    elif std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")
    shape = None if size is None else lengths((size,))
    if isinstance(mean, Variable) or isinstance(std, Variable):
        both = add(mean, std)  # says what does not broadcast
        shape = both.array.shape
        options.setdefault("dtype", both.dtype)
        options.setdefault("device", both.device)
    drawn = _random(options).normal(_on_host(mean), _on_host(std), shape)
    return _drawn(drawn, options)


def _on_host(value: Any) -> Any:  # noqa: ANN401 - a number or a tensor
    return copy_to(value.array, CPU) if isinstance(value, Variable) else value


def _random(options: Options) -> np.random.Generator:
    generator: Generator = options.pop("generator", None) or default_generator
    return generator.random


def _drawn(array: Any, options: Options) -> Tensor:  # noqa: ANN401 - or a NumPy float
    dtype = options.get("dtype") or get_default_dtype()
    if np.dtype(dtype).kind not in "fc":
        raise NotImplementedError(
            f'"check_uniform_bounds" not implemented for {np.dtype(dtype).name!r}'
        )
    return make_default(np.asarray(array), options)


def _like(other: Tensor, array: Any, options: Options) -> Tensor:  # noqa: ANN401 - or a NumPy float
    options.setdefault("dtype", other.array.dtype)
    options.setdefault("device", other.device)
    return make_like(np.asarray(array), options)
