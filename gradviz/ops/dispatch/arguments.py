"""The arguments of a call, in the order of the function's parameters."""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from gradviz.ops.conventions.promotion import Scalar, python_number
from gradviz.ops.dispatch.plan import parameters_of
from gradviz.ops.variables.variable import Value

#: Takes arguments as given, returns all by position.
Completion: TypeAlias = Callable[
    [tuple[Value, ...], dict[str, Value]], tuple[Value, ...]
]


#: Annotations of parameters that take numbers; compiled functions have the words.
_NUMBERS: Final = {
    *(Scalar, Scalar | None, float, float | None),
    *("Scalar", "Scalar | None", "float", "float | None"),
}


def places_of_numbers(function: Callable[..., Any]) -> tuple[int, ...]:
    """Return the indices of parameters that must be Python numbers.

    NumPy's would widen results. Others may be NumPy's: its functions return scalars for
    arrays without dimensions.
    """
    annotations = function.__annotations__
    return tuple(
        place
        for place, name in enumerate(parameters_of(function))
        if annotations.get(name) in _NUMBERS
    )


def any_numpy(args: Sequence[Value], places: tuple[int, ...]) -> bool:
    """Return whether an argument at one of these indices is a NumPy scalar."""
    for place in places:  # noqa: SIM110 - on the way of every op with numbers
        if isinstance(args[place], np.generic):
            return True
    return False


def completion_of(function: Callable[..., Any]) -> Completion:
    """Return a function that orders the arguments of a call and adds defaults.

    Its parameters ``x`` and ``y`` are PyTorch's ``input`` and ``other``. Where it takes
    numbers, NumPy's become Python's.
    """
    names = parameters_of(function)
    aliases = {
        public: own
        for public, own in zip(("input", "other"), names, strict=False)
        if own in ("x", "y") and public not in names
    }
    numbers = places_of_numbers(function)
    public_names = {own: public for public, own in aliases.items()}
    defaults = dict(
        zip(reversed(names), reversed(function.__defaults__ or ()), strict=False)
    )

    def complete(args: tuple[Value, ...], named: dict[str, Value]) -> tuple[Value, ...]:
        for public, own in aliases.items():
            if public in named:
                named[own] = named.pop(public)
        given = defaults | named
        try:
            completed = args + tuple([given[name] for name in names[len(args) :]])
        except KeyError:
            completed = ()
        if len(completed) == len(names) and named.keys() <= set(names[len(args) :]):
            if not numbers:
                return completed
            return tuple(
                [
                    python_number(value) if place in numbers else value
                    for place, value in enumerate(completed)
                ]
            )
        least = len(names) - len(defaults)
        shown = [public_names.get(name, name) for name in names]
        raise TypeError(
            _complaint(
                function.__name__,
                shown,
                least,
                len(args),
                [public_names.get(name, name) for name in named],
            )
        )

    return complete


def _complaint(
    function: str, names: list[str], least: int, num_given: int, named: list[str]
) -> str:
    """Describe an invalid call, in PyTorch's words.

    Args:
        function: The function called.
        names: Its parameters.
        least: Number of parameters without a default.
        num_given: Number of arguments given by position.
        named: Arguments given by name.
    """
    if num_given > len(names):
        takes = f"from {least} to {len(names)}" if least < len(names) else least
        plural = "s" if len(names) != 1 else ""
        verb = "was" if num_given == 1 else "were"
        return (
            f"{function}() takes {takes} positional argument{plural} but {num_given} "
            f"{verb} given"
        )
    for name in named:
        if name not in names:
            return f"{function}() got an unexpected keyword argument '{name}'"
        if name in names[:num_given]:
            return f"{function}() got multiple values for argument '{name}'"
    missing = [f'"{name}"' for name in names[num_given:least] if name not in named]
    return (
        f"{function}() missing {len(missing)} required positional arguments: "
        f"{', '.join(missing)}"
    )
