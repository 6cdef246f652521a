"""Making tensors of random numbers.

Differs: the numbers are NumPy's, not those of PyTorch for the same seed.
"""

from typing import Any, Final, Unpack

import numpy as np

from gradviz.backends.base import copy_to
from gradviz.backends.device import CPU
from gradviz.ops.conventions.dimensions import SizeArgs
from gradviz.ops.conventions.generator import Generator, default_generator
from gradviz.ops.conventions.promotion import get_default_dtype
from gradviz.ops.elementwise.arithmetic import add
from gradviz.ops.variables.variable import Variable, raw
from gradviz.tensors.attributes.creation_options import (
    FORMATTED,
    RANDOM,
    Options,
    check_options,
    shape_of,
)
from gradviz.tensors.creation.factories import make_default, make_like
from gradviz.tensors.creation.out_variants import fills_out
from gradviz.tensors.tensor import Tensor

#: Options of functions that make a tensor like another one.
_LIKE: Final = FORMATTED | RANDOM


def manual_seed(seed: int) -> Generator:
    """Seed the random numbers; return their generator."""
    return default_generator.manual_seed(seed)


def initial_seed() -> int:
    """The seed that `manual_seed` was given last."""
    return default_generator.initial_seed()


def seed() -> int:
    """Seed the random numbers with a random seed; return it."""
    return default_generator.seed()


def get_rng_state() -> Any:  # noqa: ANN401 - as the generator keeps it
    """Return the state that makes `set_rng_state` repeat the same numbers."""
    return default_generator.get_state()


def set_rng_state(new_state: Any) -> None:  # noqa: ANN401 - as the generator keeps it
    """Go on from where `get_rng_state` was called."""
    default_generator.set_state(new_state)


@fills_out
def randn(
    *lengths: SizeArgs, size: SizeArgs | None = None, **options: Unpack[Options]
) -> Tensor:
    """Normally distributed numbers of mean 0 and variance 1."""
    check_options("randn", options, RANDOM)
    shape = shape_of("randn", lengths, size)
    return _drawn(_random(options).standard_normal(shape), options)


@fills_out
def rand(
    *lengths: SizeArgs, size: SizeArgs | None = None, **options: Unpack[Options]
) -> Tensor:
    """Uniformly distributed numbers in ``[0, 1)``."""
    check_options("rand", options, RANDOM)
    shape = shape_of("rand", lengths, size)
    return _drawn(_random(options).random(shape), options)


@fills_out
def randint(
    *bounds: Any,  # noqa: ANN401 - integers, then a size
    low: int | None = None,
    high: int | None = None,
    size: SizeArgs | None = None,
    **options: Unpack[Options],
) -> Tensor:
    """Uniformly distributed integers: ``randint([low, ]high, size)``.

    Args:
        *bounds: The lowest (0 if left out), the one above the highest, the shape.
        low: By name.
        high: By name.
        size: The shape, by name.
        **options: See `Options`.

    Raises:
        TypeError: A bound or the shape is missing, or given twice.
        RuntimeError: There is no integer between the bounds.
    """
    check_options("randint", options, RANDOM)
    named = {"low": low, "high": high, "size": size}
    given = {name: value for name, value in named.items() if value is not None}
    # By place are those that are not named, in order; the lowest only if there is room.
    missing = [name for name in named if name not in given]
    if "low" in missing and len(bounds) < len(missing):
        missing.remove("low")
    if len(bounds) != len(missing):
        said = [type(one).__name__ for one in bounds]
        said += [f"{name}={type(one).__name__}" for name, one in given.items()]
        raise TypeError(
            f"randint() received an invalid combination of arguments - got "
            f"({', '.join(said)}), but expected (high, size) or (low, high, size)"
        )
    everything = {"low": 0} | dict(zip(missing, bounds, strict=True)) | given
    first, last = raw(everything["low"]), raw(everything["high"])
    shape = shape_of("randint", (), everything["size"])
    if first >= last:
        raise RuntimeError(
            f"random_ expects 'from' to be less than 'to', but got from={first} >= "
            f"to={last}"
        )
    drawn = _random(options).integers(first, last, shape)
    return make_default(np.asarray(drawn), options)


@fills_out
def randperm(n: int, **options: Unpack[Options]) -> Tensor:
    """The integers from 0 to ``n - 1`` in random order."""
    check_options("randperm", options, RANDOM)
    if n < 0:
        raise RuntimeError(
            f"Trying to create tensor with negative dimension {n}: [{n}]"
        )
    return make_default(_random(options).permutation(n), options)


def rand_like(input: Tensor, **options: Unpack[Options]) -> Tensor:  # noqa: A002 - PyTorch's name
    """Like `rand`, with the shape, dtype and device of `input`."""
    check_options("rand_like", options, _LIKE)
    return _like(input, _random(options).random(input.array.shape), options)


def randn_like(input: Tensor, **options: Unpack[Options]) -> Tensor:  # noqa: A002 - PyTorch's name
    """Like `randn`, with the shape, dtype and device of `input`."""
    check_options("randn_like", options, _LIKE)
    return _like(input, _random(options).standard_normal(input.array.shape), options)


def randint_like(
    input: Tensor,  # noqa: A002 - PyTorch's name
    low: int | None = None,
    high: int | None = None,
    **options: Unpack[Options],
) -> Tensor:
    """Like `randint`, with the shape, dtype and device of `input`.

    Args:
        input: Tensor with the shape, dtype and device of the result.
        low: The lowest, or the one above the highest if that is left out.
        high: The one above the highest.
        **options: See `Options`.
    """
    check_options("randint_like", options, _LIKE)
    first, last = (0, low) if high is None else (low or 0, high)
    if last is None:
        raise TypeError(
            'randint_like() missing 1 required positional arguments: "high"'
        )
    drawn = _random(options).integers(first, last, input.array.shape)
    return _like(input, drawn, options)


@fills_out
def normal(
    mean: Any,  # noqa: ANN401 - a number or a tensor
    std: Any = 1.0,  # noqa: ANN401 - a number or a tensor
    size: SizeArgs | None = None,
    **options: Unpack[Options],
) -> Tensor:
    """Normally distributed numbers.

    Args:
        mean: Of each element, or of all.
        std: The standard deviation of each element, or of all.
        size: The shape, if both are numbers.
        **options: See `Options`.

    Raises:
        RuntimeError: A standard deviation is negative, or shapes do not broadcast.
    """
    check_options("normal", options, RANDOM)
    of_numbers = not (isinstance(mean, Variable) or isinstance(std, Variable))
    if of_numbers is (size is None):
        raise TypeError(
            f"normal() received an invalid combination of arguments - got "
            f"{'no size' if of_numbers else 'a size'}, but expected (mean, std, size) "
            f"of numbers, or (mean, std) with a tensor"
        )
    if isinstance(std, Tensor):
        if bool((std < 0).any()):
            raise RuntimeError("normal expects all elements of std >= 0.0")
    elif std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")
    shape = None if size is None else shape_of("normal", (), size)
    if not of_numbers:
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
