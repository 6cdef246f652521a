"""What an op saves, and how gradients are computed from it: worked out once per op.

Note [Formulas say what they need]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
A formula's first parameter is the gradient. The names of the others say what the op
has to save: a parameter of the forward function, ``result`` for what it returned,
``x_shape``, ``x_dtype`` or ``x_device`` for a property of its parameter ``x``. Only
what the *wanted* gradients need is saved: ``x * 2`` keeps nothing of `x`. This is the
contract of PyTorch's derivatives.yaml.

Formulas are written in ops. In a plain backward they get raw arrays; with
``create_graph`` they get variables in their place, and so become part of the graph.
They need not undo broadcasting or casts: the engine sums and casts a gradient that is
larger or wider than its receiver expects (V3, V5).
"""

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias

from gradviz.backends.base import Array
from gradviz.engine.protocols import Gradient
from gradviz.ops.variable import device_of

#: The gradient of one input, given that of the result and what it names.
Formula: TypeAlias = Callable[..., Gradient]

#: Takes some items of a sequence.
Picker: TypeAlias = Callable[[Sequence[Any]], tuple[Any, ...]]

#: Origins of saved values that are no input; see `Plan`.
RESULT: Final = -1
CONSTANT: Final = -2


class Plan(NamedTuple):
    """What to save for a certain set of wanted gradients, and how to compute them.

    Attributes:
        keep: Takes all values that formulas can name, returns those to save.
        steps: For each edge, its formula (None if not wanted) and what takes the
            formula's arguments from what was saved.
        origins: For each saved value, the edge that the gradient of it takes: an
            index into `next_edges`, `RESULT`, or `CONSTANT`.
        has_tensors: Whether something saved is a tensor, to be freed after use.
    """

    keep: Picker
    steps: tuple[tuple[Formula | None, Picker], ...]
    origins: tuple[int, ...]
    has_tensors: bool


#: Of which parameter, and how it is read, for each property that formulas name.
Properties: TypeAlias = Sequence[tuple[int, Callable[[Array], Any]]]

_PROPERTIES: Final[dict[str, Callable[[Array], Any]]] = {
    "_shape": lambda array: getattr(array, "shape", ()),
    "_dtype": lambda array: array.dtype,
    "_device": device_of,
}


def plans_of(
    names: Sequence[str], formulas: dict[str, Formula], arrays: Sequence[str]
) -> list[Plan]:
    """A plan for each set of wanted gradients: bit *i* of its index is formula *i*.

    Args:
        names: The parameters of the forward function.
        formulas: By the parameter whose gradient each computes.
        arrays: Further parameters that are tensors.
    """
    available = (*names, "result", *_property_names(names, formulas))
    tensors = {*formulas, *arrays, "result"}
    order = list(formulas)
    plans = []
    for wanted in range(1 << len(order)):
        chosen = {
            name: formulas[name] for i, name in enumerate(order) if wanted >> i & 1
        }
        needed = [p for formula in chosen.values() for p in parameters_of(formula)[1:]]
        kept = tuple(dict.fromkeys(needed))
        plans.append(
            Plan(
                keep=pick([available.index(name) for name in kept]),
                steps=tuple(
                    (
                        chosen.get(name),
                        pick(
                            [kept.index(p) for p in parameters_of(formulas[name])[1:]]
                            if name in chosen
                            else []
                        ),
                    )
                    for name in order
                ),
                origins=tuple(
                    order.index(name)
                    if name in order
                    else RESULT
                    if name == "result"
                    else CONSTANT
                    for name in kept
                ),
                has_tensors=not tensors.isdisjoint(kept),
            )
        )
    return plans


def _property_names(names: Sequence[str], formulas: dict[str, Formula]) -> list[str]:
    """Properties such as ``x_shape`` that formulas name and parameters do not."""
    named = {p for formula in formulas.values() for p in parameters_of(formula)[1:]}
    return sorted(named - {*names, "result"})


def properties_of(names: Sequence[str], formulas: dict[str, Formula]) -> Properties:
    """For each of `_property_names`: of which parameter, and how it is read."""
    found = []
    for name in _property_names(names, formulas):
        parameter, _, kind = name.rpartition("_")
        found.append((names.index(parameter), _PROPERTIES[f"_{kind}"]))
    return found


def pick(indices: Sequence[int]) -> Picker:
    """A function that takes these items of a sequence, always as a tuple."""
    match tuple(indices):
        case ():
            return lambda _: ()
        case (only,):
            return lambda values: (values[only],)
        case several:
            return itemgetter(*several)


def parameters_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of the parameters of a Python function."""
    code = function.__code__
    return code.co_varnames[: code.co_argcount]
