"""Cases of an op: arguments, dtypes, and calls that it refuses.

A case says nothing of values or gradients that are to come out. What does: finite
differences, float64, another device (`tests/ops/test_every_op.py`), and PyTorch
(`tests/parity/test_every_op.py`).
"""

import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Final, Literal

import numpy as np

FLOATS: Final = ("float64", "float32", "float16")
COMPLEX: Final = ("complex128", "complex64")
INTS: Final = ("int64", "int32", "int16", "int8", "uint8")
BOOL: Final = ("bool",)
DOUBLE: Final = ("float64", "float32")  # where half precision is not defined
INEXACT: Final = FLOATS + COMPLEX
REAL: Final = FLOATS + INTS
NUMBERS: Final = FLOATS + COMPLEX + INTS
ALL: Final = FLOATS + COMPLEX + INTS + BOOL

_NOTHING: Final[Mapping[str, Any]] = {}


@dataclass(frozen=True)
class A:
    """A random array as argument.

    Attributes:
        shape: Its shape.
        low: Its smallest element...
        high: ...and its largest; an integer is smaller than this.
        kind: "f" for the dtype that is tried; "r" for the real one of its precision,
            "d" for the same without a gradient; "i" for int64, "b" for bool.
        spaced: All elements differ by much more than a step of finite differences.
    """

    shape: tuple[int, ...] = ()
    low: float = -2.0
    high: float = 2.0
    kind: Literal["f", "r", "d", "i", "b"] = "f"
    spaced: bool = False

    def array(self, random: np.random.Generator, dtype: str) -> np.ndarray:
        """The argument itself.

        Args:
            random: Where the elements come from.
            dtype: The dtype that is tried.
        """
        wanted = np.dtype(dtype)
        match self.kind:
            case "b":
                return np.asarray(random.random(self.shape) < 0.5)
            case "i":
                numbers = random.integers(int(self.low), int(self.high), self.shape)
                return np.asarray(numbers, np.int64)
            case "r" | "d" if wanted.kind == "c":
                wanted = np.empty(0, wanted).real.dtype
        values = self._values(random)
        if wanted.kind == "c":
            values = values + 1j * self._values(random)
        if wanted.kind == "u":
            values = np.abs(values)
        if wanted.kind in "iu":
            values = np.floor(values)
        return np.asarray(values).astype(wanted)

    def _values(self, random: np.random.Generator) -> np.ndarray:
        if not self.spaced:
            return np.asarray(random.uniform(self.low, self.high, self.shape))
        size = int(np.prod(self.shape))
        grid = np.linspace(self.low, self.high, size)
        return random.permutation(grid).reshape(self.shape)

    def __str__(self) -> str:
        letters = "" if self.kind == "f" else self.kind
        limits = "" if (self.low, self.high) == (-2, 2) else f":{self.low}..{self.high}"
        shape = ",".join(map(str, self.shape))
        return f"{letters}[{shape}]{limits}{'!' * self.spaced}"


@dataclass(frozen=True)
class V:
    """An array of certain values as argument: kinks, infinities, indices.

    Attributes:
        values: Numbers in nested tuples.
        kind: As of `A`; complex numbers stay what they are.
    """

    values: Any
    kind: Literal["f", "r", "d", "i", "b"] = "f"

    def array(self, _: np.random.Generator, dtype: str) -> np.ndarray:
        """The argument itself; see `A.array`."""
        wanted = np.dtype(dtype)
        match self.kind:
            case "b":
                wanted = np.dtype(bool)
            case "i":
                wanted = np.dtype(np.int64)
            case "r" | "d" if wanted.kind == "c":
                wanted = np.empty(0, wanted).real.dtype
        return np.asarray(self.values).astype(wanted)

    def __str__(self) -> str:
        return f"{'' if self.kind == 'f' else self.kind}{self.values}".replace(" ", "")


@dataclass(frozen=True)
class Dtype:
    """A dtype as argument, by the name that it has in both worlds."""

    name: str

    def __str__(self) -> str:
        return self.name


def call_text(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    """A call in one line: what identifies a case."""
    parts = [_text(one) for one in args]
    parts += [f"{key}={_text(value)}" for key, value in kwargs.items()]
    return f"{name}({','.join(parts)})"


def _text(value: object) -> str:
    if isinstance(value, list):
        return "[" + ",".join(map(_text, value)) + "]"
    if isinstance(value, tuple):
        return "(" + ",".join(map(_text, value)) + ")"
    return str(value)


@dataclass(frozen=True)
class Case:
    """A call of an op.

    Attributes:
        name: PyTorch's path of the function: "add", "Tensor.add_", "linalg.inv". The
            first argument of a name that ends in one underscore is changed in place.
        args: Numbers and other plain values; `A`, `V` and `Dtype`, in lists too.
        kwargs: Arguments by name.
        dtypes: Of the arrays of kind "f": what is tried, with the same outcome.
        numeric: Compare gradients with finite differences; False at a kink, and where
            nothing is differentiable.
        second: Compare gradients of gradients too.
        graph: Compare the whole graph with PyTorch's, not only the last node.
        rtol: Largest relative error of values in float64; smaller precision in
            proportion.
        differs: What is different in PyTorch, if the two cannot be compared.
    """

    name: str
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    dtypes: tuple[str, ...] = FLOATS
    numeric: bool = True
    second: bool = True
    graph: bool = True
    rtol: float = 1e-12
    differs: str = ""

    @property
    def id(self) -> str:
        """The call in one line."""
        return call_text(self.name, self.args, self.kwargs)

    @property
    def changes_in_place(self) -> bool:
        """True if the first argument is changed."""
        return self.name.endswith("_") and not self.name.endswith("__")

    def arrays(self, dtype: str, seed: int = 0) -> list[np.ndarray]:
        """The array arguments, from left to right; the same for the same seed."""
        random = np.random.default_rng((zlib.crc32(self.id.encode()), seed))
        return [one.array(random, dtype) for one in self._places()]

    def differentiated(self) -> list[bool]:
        """Return whether the gradient of each array argument is wanted."""
        return [one.kind in "fr" for one in self._places()]

    def _places(self) -> Iterator[A | V]:
        yield from _arrays_in([*self.args, *self.kwargs.values()])

    def call(self, world: Any, tensors: list[Any]) -> Any:
        """Call the op.

        Args:
            world: `gradviz` or `torch`.
            tensors: What stands for the array arguments, from left to right.
        """
        left = iter(tensors)

        def concrete(value: Any) -> Any:
            match value:
                case A() | V():
                    return next(left)
                case Dtype():
                    return getattr(world, value.name)
                case list() | tuple():
                    return type(value)(map(concrete, value))
                case _:
                    return value

        args = [concrete(one) for one in self.args]
        kwargs = {key: concrete(value) for key, value in self.kwargs.items()}
        if self.changes_in_place:
            args[0] = args[0].clone()
        return function_of(world, self.name)(*args, **kwargs)


@dataclass(frozen=True)
class Refused:
    """A call that is an error, with PyTorch's words.

    Attributes:
        name: As of `Case`.
        args: As of `Case`; arrays need no gradients.
        kwargs: As of `Case`.
        error: The class of the exception.
        message: A part of what it says; the parity test compares all of it.
        dtype: Of the arrays of kind "f".
        same: Whether PyTorch says the very same.
    """

    name: str
    args: tuple[Any, ...]
    error: type[Exception]
    message: str
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    dtype: str = "float32"
    same: bool = True

    @property
    def id(self) -> str:
        """The call in one line."""
        return f"{call_text(self.name, self.args, self.kwargs)}-{self.dtype}"

    def call(self, world: Any, make: Callable[[np.ndarray], Any]) -> Any:
        """Call the op; `make` turns arrays into the world's tensors."""
        case = Case(self.name, self.args, self.kwargs)
        return case.call(world, list(map(make, case.arrays(self.dtype))))


def function_of(world: Any, name: str) -> Callable[..., Any]:
    """The function that a world knows under a dotted name."""
    return reduce(getattr, name.split("."), world)


def _arrays_in(values: Any) -> Iterator[A | V]:
    for value in values:
        if isinstance(value, (A, V)):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _arrays_in(value)


def tensors_in(result: Any) -> list[Any]:
    """The tensors of a result, which may be one, or several in tuples and lists."""
    if isinstance(result, (list, tuple)):
        return [tensor for one in result for tensor in tensors_in(one)]
    return [result] if hasattr(result, "grad_fn") else []
