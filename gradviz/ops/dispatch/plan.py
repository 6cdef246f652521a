"""The plan of an op, made once: saved values, and formulas of gradients.

Note [Formulas say what they need]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
A formula's first parameter is the gradient: ``grad``, that of the op's only
differentiable result, or ``grads``, a tuple with one for each, None where none came.
The names of the others say what the op has to save: a parameter of the forward
function, ``result`` (or the name of one of several) for what it returned, ``x_shape``,
``x_dtype``, ``x_device`` or ``x_columnwise`` for a property of its parameter ``x``.
Only what the *wanted* gradients need is saved: ``x * 2`` keeps nothing of `x`. This is
the contract of PyTorch's derivatives.yaml.

Formulas are written in ops. In a plain backward they get raw arrays; with
``create_graph`` they get variables in place of what is differentiated, and so become
part of the graph. They need not undo broadcasting or casts: the engine sums and casts a
gradient that is larger or wider than its receiver expects (V3, V5).

Where gradients share most of their work, a formula ``together`` computes them in a
plain backward that wants several: it takes which ones, then the gradient of the first
result and what it names, and returns one for each, None where it is not wanted. Where
other results have gradients too, each gradient is computed by itself.

Note [Formulas in a graph]
~~~~~~~~~~~~~~~~~~~~~~~~~~
With ``create_graph`` the nodes that formulas record are to be PyTorch's, in its order.
A plain backward asks for none of this, and pays for none of it:

- PyTorch computes an op's gradients in the alphabetical order of its names for the
  inputs, ``other`` before ``self``. So `binary` begins with that of ``y``, and
  `differentiable` computes them in the order in which its formulas are written. Edges
  have that of the parameters.
- Where PyTorch has one function for all gradients of an op, which may record one node
  for them, there is a formula ``joint``: it takes which gradients are wanted, then what
  the others take, and returns all of them.
- Arithmetic with a number is another node in C++ than in Python, see
  `gradviz.ops.elementwise.scalar_arithmetic`; formulas are C++ there. `IN_FORMULA`
  tells ops that a formula calls them.
"""

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias

from gradviz.backends.base import Array
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.variables.saved_variable import HOOKS_IN_USE, save
from gradviz.ops.variables.variable import Variable, device_of

#: The gradient of one input, given that of the result and what it names.
Formula: TypeAlias = Callable[..., Gradient]

#: Takes some items of a sequence.
Picker: TypeAlias = Callable[[Sequence[Any]], tuple[Any, ...]]

#: True while a formula that records nodes is at work; see Note [Formulas in a graph].
IN_FORMULA: Final = ContextVar("gradviz.in_formula", default=False)

#: The origin of saved values that are not differentiated; see `Plan`.
CONSTANT: Final = -1

#: The origin of the first result; that of the next one is one less, and so on.
RESULT: Final = -2


class Plan:
    """Values to save for a set of wanted gradients, and formulas to compute them.

    Read by every op; immutable.

    Attributes:
        kept: Indices of the formulas' values that the node saves.
        names: Names of those.
        steps: For each edge, its formula (None if not wanted) and a getter of the
            formula's arguments from the saved values.
        origins: For each saved value, the edge of its gradient: an index into
            `next_edges`, `CONSTANT`, or counted down from `RESULT`.
        has_tensors: True if a saved value is a tensor, to be freed after use.
        saves_results: True if a result is among them.
        only: The formula, if there is only one edge and one saved tensor.
        turns: Indices of `steps`, in the order for a graph; the given one if None.
        joint: Computes all gradients at once in a graph, with a getter of its
            arguments; see Note [Formulas in a graph].
        together: Computes all gradients at once in a plain backward, with a getter of
            its arguments.
    """

    __slots__ = (
        "has_tensors",
        "joint",
        "kept",
        "names",
        "only",
        "origins",
        "saves_results",
        "steps",
        "together",
        "turns",
    )

    def __init__(  # noqa: PLR0913 - all that there is to say of it
        self,
        kept: tuple[int, ...],
        names: tuple[str, ...],
        steps: tuple[tuple[Formula | None, Picker], ...],
        origins: tuple[int, ...],
        *,
        has_tensors: bool,
        saves_results: bool,
        only: Formula | None = None,
        turns: tuple[int, ...] | None = None,
        joint: tuple[Formula, Picker] | None = None,
        together: tuple[Formula, Picker] | None = None,
    ) -> None:
        self.kept = kept
        self.names = names
        self.steps = steps
        self.origins = origins
        self.has_tensors = has_tensors
        self.saves_results = saves_results
        self.only = only
        self.turns = turns
        self.joint = joint
        self.together = together

    def keep(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Return the values that the node saves; see Note [Saving]."""
        kept = tuple([values[index] for index in self.kept])
        if self.has_tensors:
            for value in kept:
                if isinstance(value, Variable):
                    tensor = value  # when compiled: typed
                    if HOOKS_IN_USE or (tensor.version and tensor.version.value):
                        return _saved(kept, self.origins)
        return kept


def _is_columnwise(matrix: Array) -> bool:
    """Return whether a matrix is stored column by column, without gaps."""
    if not matrix.flags.f_contiguous or matrix.ndim != 2:
        return False
    step, next_column = matrix.strides
    return bool(step == matrix.itemsize and next_column == step * matrix.shape[0])


#: For each property that formulas name, its parameter and the function that reads it.
Properties: TypeAlias = Sequence[tuple[int, Callable[[Array], Any]]]

_PROPERTIES: Final[dict[str, Callable[[Array], Any]]] = {
    "_shape": lambda array: getattr(array, "shape", ()),
    "_dtype": lambda array: array.dtype,
    "_device": device_of,
    "_columnwise": _is_columnwise,
}


class Signature(NamedTuple):
    """Names available to the formulas of an op.

    Attributes:
        parameters: Parameters of the forward function.
        formulas: By the parameter whose gradient each computes.
        arrays: Further parameters that are tensors.
        results: Names of the results of the forward.
        plain: Results that are not differentiable.
        turns: As in `Plan`.
        joint: As in `Plan`.
        together: As in `Plan`.
    """

    parameters: Sequence[str]
    formulas: dict[str, Formula]
    arrays: Sequence[str] = ()
    results: Sequence[str] = ("result",)
    plain: Sequence[str] = ()
    turns: tuple[int, ...] | None = None
    joint: Formula | None = None
    together: Formula | None = None

    def properties(self) -> Properties:
        """For each property that formulas name: of which parameter, and how read."""
        found = []
        for name in self._property_names():
            parameter, _, kind = name.rpartition("_")
            read = _PROPERTIES[f"_{kind}"]
            found.append((self.parameters.index(parameter), read))
        return found

    def saved_names(self) -> set[str]:
        """Return the names of all values that a node of the op may save."""
        found = {p for formula in self.formulas.values() for p in _needs(formula)}
        return found.union(*map(_named_after_wanted, (self.joint, self.together)))

    def plan(self, wanted: int) -> Plan:
        """Return the plan for some wanted gradients: bit *i* is that of formula *i*."""
        available = (*self.parameters, *self.results, *self._property_names())
        tensors = {*self.formulas, *self.arrays, *self.results}
        order = list(self.formulas)
        chosen = [name for i, name in enumerate(order) if wanted >> i & 1]
        needed = [p for name in chosen for p in _needs(self.formulas[name])]
        if chosen:
            needed += _named_after_wanted(self.joint)
        together = self.together if len(chosen) > 1 else None
        needed += _named_after_wanted(together)
        kept = tuple(dict.fromkeys(needed))
        has_tensors = not tensors.isdisjoint(kept)
        origins = tuple(map(self._origin, kept))
        return Plan(
            kept=tuple(map(available.index, kept)),
            names=kept,
            steps=tuple(
                (self.formulas[name], pick(list(map(kept.index, _needs(formula)))))
                if name in chosen
                else (None, pick(()))
                for name, formula in self.formulas.items()
            ),
            origins=origins,
            has_tensors=has_tensors,
            saves_results=not set(self.results).isdisjoint(kept),
            only=self.formulas[chosen[0]]
            if len(chosen) == len(order) == len(kept) == 1 and has_tensors
            else None,
            turns=self.turns,
            joint=_with_picker(self.joint, kept) if chosen else None,
            together=_with_picker(together, kept),
        )

    def _origin(self, name: str) -> int:
        differentiable = [one for one in self.results if one not in self.plain]
        if name in self.formulas:
            return list(self.formulas).index(name)
        if name in differentiable:
            return RESULT - differentiable.index(name)
        return CONSTANT

    def _property_names(self) -> list[str]:
        """Properties such as ``x_shape`` that formulas name and parameters do not."""
        return sorted(self.saved_names() - {*self.parameters, *self.results})


class Plans(dict[int, Plan]):
    """The plans of an op, by which gradients are wanted; see `Signature.plan`.

    Each is made when it is first asked for: most of them never are, and making them all
    took a tenth of the time that an import takes.
    """

    def __init__(self, signature: Signature) -> None:
        super().__init__()
        self._signature = signature

    def __missing__(self, wanted: int) -> Plan:
        plan = self[wanted] = self._signature.plan(wanted)
        return plan


def _needs(formula: Formula) -> tuple[str, ...]:
    return parameters_of(formula)[1:]


def _named_after_wanted(formula: Formula | None) -> tuple[str, ...]:
    """Return the names in a joint formula after its first two parameters."""
    return () if formula is None else parameters_of(formula)[2:]


def _with_picker(
    formula: Formula | None, kept: tuple[str, ...]
) -> tuple[Formula, Picker] | None:
    """Return a formula for all gradients, and a getter of its arguments."""
    if formula is None:
        return None
    return formula, pick(list(map(kept.index, _named_after_wanted(formula))))


def pick(indices: Sequence[int]) -> Picker:
    """A function that takes these items of a sequence, always as a tuple."""
    match tuple(indices):
        case ():
            return lambda _: ()
        case (only,):
            return lambda values: (values[only],)
        case several:
            return itemgetter(*several)


def _saved(values: Sequence[Any], origins: Sequence[int]) -> tuple[Any, ...]:
    return tuple(
        [
            save(value, output_nr=RESULT - origin if origin <= RESULT else None)
            if isinstance(value, Variable)
            else value
            for value, origin in zip(values, origins, strict=True)
        ]
    )


def parameters_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of the parameters of a Python function."""
    code = function.__code__
    return code.co_varnames[: code.co_argcount]
