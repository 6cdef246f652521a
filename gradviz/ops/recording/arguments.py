"""The arguments of a call, in the order of the function's parameters."""

import inspect
from collections.abc import Callable
from typing import Any, TypeAlias

from gradviz.ops.recording.plan import parameters_of
from gradviz.ops.recording.variable import Value

#: Takes arguments as given, returns all by position.
Completion: TypeAlias = Callable[
    [tuple[Value, ...], dict[str, Value]], tuple[Value, ...]
]


def completion_of(function: Callable[..., Any]) -> Completion:
    """What puts the arguments of a call of `function` in order, with its defaults."""
    names = parameters_of(function)
    defaults = dict(
        zip(reversed(names), reversed(function.__defaults__ or ()), strict=False)
    )

    def complete(args: tuple[Value, ...], named: dict[str, Value]) -> tuple[Value, ...]:
        given = defaults | named
        try:
            completed = args + tuple([given[name] for name in names[len(args) :]])
        except KeyError:
            completed = ()
        if len(completed) == len(names) and named.keys() <= set(names[len(args) :]):
            return completed
        return (
            inspect.signature(function).bind(*args, **named).args
        )  # says what is wrong

    return complete
