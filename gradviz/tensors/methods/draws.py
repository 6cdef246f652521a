"""Methods that draw random numbers into the tensor itself.

Differs: the numbers are NumPy's, not those of PyTorch for the same seed.
"""

from collections.abc import Callable
from typing import Any, Final, Self

import numpy as np

from gradviz.backends.base import beside
from gradviz.ops.conventions.dtype_names import cpp_name, scalar_type_name
from gradviz.ops.conventions.generator import Generator
from gradviz.ops.conventions.promotion import Operand
from gradviz.ops.dispatch.in_place import change
from gradviz.ops.elementwise.drawing import (
    chances_of,
    check_kind,
    constant_op,
    random_of,
)
from gradviz.ops.variables.variable import Variable


class Draws(Variable):
    """Random numbers.

    Those in place return the tensor, take the `Generator` to draw from, and refuse a
    leaf that requires gradients, as every change in place; gradients that come back
    through them are zeros.
    """

    __slots__ = ()

    def normal_(
        self, mean: float = 0, std: float = 1, *, generator: Generator | None = None
    ) -> Self:
        """Set to normally distributed numbers.

        Raises:
            RuntimeError: `std` is negative.
            NotImplementedError: The elements are no floats.
        """
        if std < 0:
            raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")
        check_kind(self, "fc", "normal_kernel_cpu")
        random = random_of(generator)
        if self.array.dtype.kind != "c":
            return change(self, _NORMAL, lambda size: random.normal(mean, std, size))
        std /= np.sqrt(2)  # of each part
        return change(self, _NORMAL, lambda size: random.normal(0, std, size) + mean)

    def uniform_(
        self,
        from_: float = 0,
        to: float = 1,
        *,
        generator: Generator | None = None,
        **named: float,
    ) -> Self:
        """Set to uniformly distributed numbers from `from_` up to `to`.

        Args:
            from_: The lowest number.
            to: Upper bound, above all numbers.
            generator: Source of the numbers.
            **named: ``from``, PyTorch's name of the first, which is Python's too.

        Raises:
            RuntimeError: `from_` is above `to`.
            NotImplementedError: The elements are no floats.
        """
        low = named.pop("from", from_)
        _check_names(named, "uniform_")
        if low > to:
            raise RuntimeError(
                f"uniform_ expects to return a [from, to) range, but found "
                f"from={low} > to={to}"
            )
        check_kind(self, "fc", "check_uniform_bounds")
        random = random_of(generator)
        return change(self, _UNIFORM, lambda size: random.uniform(low, to, size))

    def random_(
        self,
        *bounds: int,
        generator: Generator | None = None,
        to: int | None = None,
        **named: int,
    ) -> Self:
        """Set to uniformly distributed integers: ``random_([[from, ]to])``.

        Args:
            *bounds: The lowest, 0 if left out, and the one above the highest. Without
                both, all that the dtype can hold without gaps, from 0 on.
            generator: Source of the numbers.
            to: The upper bound, by name.
            **named: ``from``, the lower bound, by name.

        Raises:
            RuntimeError: There is no integer between the bounds, or the dtype cannot
                hold one of them.
            NotImplementedError: The elements are complex.
        """
        dtype = self.array.dtype
        given = {name: named.pop(name) for name in ("from",) if name in named}
        _check_names(named, "random_")
        if to is not None:
            given["to"] = to
        # By position: the only one is the upper bound, unless that has a name.
        names = ["to"] if len(bounds) == 1 and not given else ["from", "to"]
        by_place = dict(zip(names, bounds, strict=False))
        if len(bounds) > len(names) or by_place.keys() & given.keys():
            raise TypeError(
                f"random_() received an invalid combination of arguments - got "
                f"{len(bounds)} bounds, and by name {list(given)}, but expected none, "
                f"(to) or (from, to)"
            )
        given |= by_place
        low, high = given.get("from", 0), given.get("to")
        check_kind(self, "fiub", "random_kernel_cpu")
        op = _RANDOM[2 if high is None else 1 if low == 0 else 0]
        if high is None:
            high = _num_without_gaps(dtype)
        if low >= high:
            raise RuntimeError(
                f"random_ expects 'from' to be less than 'to', but got from={low} >= "
                f"to={high}"
            )
        for name, bound in (("from", low), ("to - 1", high - 1)):
            if dtype.kind != "f" and not _holds(dtype, bound):
                raise RuntimeError(f"{name} is out of bounds for {cpp_name(dtype)}")
        random = random_of(generator)
        return change(self, op, lambda size: random.integers(low, high, size))

    def bernoulli_(
        self, p: Operand = 0.5, *, generator: Generator | None = None
    ) -> Self:
        """Set to 1 with probability `p`, a number or a tensor, else to 0.

        Raises:
            RuntimeError: A probability is not between 0 and 1.
            NotImplementedError: The elements are complex.
        """
        check_kind(self, "fiub", "bernoulli_scalar_cpu_")
        words = "Expected p_in >= 0 && p_in <= 1 to be true, but got false."
        if not isinstance(p, Variable):
            words = f"bernoulli_ expects p to be in [0, 1], but got p={p}"
        chances = chances_of(p, words)
        random = random_of(generator)
        op = _BERNOULLI_OF_TENSOR if isinstance(p, Variable) else _BERNOULLI_OF_NUMBER
        return change(
            self,
            op,
            lambda size: beside(self.array, np.asarray(random.random(size))) < chances,
        )

    def exponential_(
        self, lambd: float = 1, *, generator: Generator | None = None
    ) -> Self:
        """Set to exponentially distributed numbers of mean ``1 / lambd``.

        Raises:
            RuntimeError: `lambd` is not positive, or the elements are no floats.
        """
        if lambd <= 0:
            raise RuntimeError(
                f"exponential_ expects lambda > 0.0, but found lambda={lambd}"
            )
        _check_continuous(self, "Exponential", scalar_type_name)
        random = random_of(generator)
        return change(
            self, _EXPONENTIAL, lambda size: random.exponential(1 / lambd, size)
        )

    def cauchy_(
        self, median: float = 0, sigma: float = 1, *, generator: Generator | None = None
    ) -> Self:
        """Set to numbers of a Cauchy distribution.

        Raises:
            RuntimeError: `sigma` is not positive, or the elements are no floats.
        """
        if sigma <= 0:
            raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma}")
        _check_continuous(self, "Cauchy", cpp_name)
        random = random_of(generator)
        return change(
            self, _CAUCHY, lambda size: median + sigma * random.standard_cauchy(size)
        )

    def log_normal_(
        self, mean: float = 1, std: float = 2, *, generator: Generator | None = None
    ) -> Self:
        """Fill with log-normal numbers.

        Raises:
            RuntimeError: `std` is not positive.
            NotImplementedError: The elements are no floats.
        """
        if std <= 0:
            raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std}")
        check_kind(self, "f", "log_normal_cpu")
        random = random_of(generator)
        return change(self, _LOG_NORMAL, lambda size: random.lognormal(mean, std, size))

    def geometric_(self, p: float, *, generator: Generator | None = None) -> Self:
        """Fill with numbers of trials until a success of probability `p`.

        Raises:
            RuntimeError: `p` is not between 0 and 1.
            NotImplementedError: The elements are complex or bool.
        """
        if not 0 < p < 1:
            raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p}")
        check_kind(self, "fiu", "geometric_cpu")
        random = random_of(generator)
        return change(self, _GEOMETRIC, lambda size: random.geometric(p, size))


_NORMAL: Final = constant_op("NormalBackward0")
_UNIFORM: Final = constant_op("UniformBackward0")
_EXPONENTIAL: Final = constant_op("ExponentialBackward0")
_CAUCHY: Final = constant_op("CauchyBackward0")
_LOG_NORMAL: Final = constant_op("LogNormalBackward0")
_GEOMETRIC: Final = constant_op("GeometricBackward0")
#: By how many bounds are left out; see `Draws.random_`.
_RANDOM: Final = [constant_op(f"RandomBackward{missing}") for missing in range(3)]
_BERNOULLI_OF_TENSOR: Final = constant_op("BernoulliBackward1")
_BERNOULLI_OF_NUMBER: Final = constant_op("BernoulliBackward2")


def _check_continuous(
    x: Variable, distribution: str, name: Callable[[np.dtype[Any]], str]
) -> None:
    if x.array.dtype.kind != "f":
        raise RuntimeError(
            f"{distribution} distribution is a continuous probability distribution. "
            f"dtype must be a floating point but you specified {name(x.array.dtype)}"
        )


def _check_names(left_over: dict[str, Any], method: str) -> None:
    for name in left_over:
        raise TypeError(f"{method}() got an unexpected keyword argument {name!r}")


def _num_without_gaps(dtype: np.dtype[Any]) -> int:
    """Return how many integers from 0 on a dtype represents without gaps."""
    if dtype.kind == "f":
        return int(2 ** (np.finfo(dtype).nmant + 1)) + 1
    return 2 if dtype.kind == "b" else int(np.iinfo(dtype).max)


def _holds(dtype: np.dtype[Any], number: int) -> bool:
    if dtype.kind == "b":
        return 0 <= number <= 1
    limits = np.iinfo(dtype)
    return int(limits.min) <= number <= int(limits.max)
