"""What an op saves, and how gradients are computed from it: worked out once per op.

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
from gradviz.engine.protocols import Gradient
from gradviz.ops.recording.saved_variable import HOOKS_IN_USE, save
from gradviz.ops.recording.variable import Variable, device_of

#: The gradient of one input, given that of the result and what it names.
Formula: TypeAlias = Callable[..., Gradient]

#: Takes some items of a sequence.
Picker: TypeAlias = Callable[[Sequence[Any]], tuple[Any, ...]]

#: Whether a formula is at work that records nodes; see Note [Formulas in a graph].
IN_FORMULA: Final = ContextVar("gradviz.in_formula", default=False)

#: The origin of saved values that are not differentiated; see `Plan`.
CONSTANT: Final = -1

#: The origin of the first result; that of the next one is one less, and so on.
RESULT: Final = -2


class Plan:
    """What to save for a certain set of wanted gradients, and how to compute them.

    Read by every op, and changed by nobody.

    Attributes:
        kept: Which of the values that formulas can name the node saves.
        names: What those are called.
        steps: For each edge, its formula (None if not wanted) and what takes the
            formula's arguments from what was saved.
        origins: For each saved value, the edge that the gradient of it takes: an
            index into `next_edges`, `CONSTANT`, or counted down from `RESULT`.
        has_tensors: Whether something saved is a tensor, to be freed after use.
        saves_results: Whether a result is among them.
        only: The formula, if there is but one edge, and but one tensor is saved.
        turns: Indices of `steps`, in the order for a graph; the given one if None.
        joint: What computes all gradients at once in a graph, and what takes its
            arguments; see Note [Formulas in a graph].
        together: What computes all gradients at once in a plain backward, and what
            takes its arguments.
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
        """What the node saves of all that formulas can name; see Note [Saving]."""
        kept = tuple([values[index] for index in self.kept])
        if self.has_tensors:
            for value in kept:
                if isinstance(value, Variable):
                    tensor = value
                    if HOOKS_IN_USE or (tensor.version and tensor.version.value):
                        return _saved(kept, self.origins)
        return kept


def _is_columnwise(matrix: Array) -> bool:
    """Whether a matrix lies in memory column by column, without gaps."""
    if not matrix.flags.f_contiguous or matrix.ndim != 2:
        return False
    step, next_column = matrix.strides
    return bool(step == matrix.itemsize and next_column == step * matrix.shape[0])


#: Of which parameter, and how it is read, for each property that formulas name.
Properties: TypeAlias = Sequence[tuple[int, Callable[[Array], Any]]]

_PROPERTIES: Final[dict[str, Callable[[Array], Any]]] = {
    "_shape": lambda array: getattr(array, "shape", ()),
    "_dtype": lambda array: array.dtype,
    "_device": device_of,
    "_columnwise": _is_columnwise,
}


class Signature(NamedTuple):
    """What can be named in the formulas of an op.

    Attributes:
        parameters: Those of the forward function.
        formulas: By the parameter whose gradient each computes.
        arrays: Further parameters that are tensors.
        results: What the forward returns.
        plain: Results that are not differentiable.
        turns: As those of `Plan`.
        joint: As that of `Plan`.
        together: As that of `Plan`.
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
        """All that a node of the op may save."""
        found = {p for formula in self.formulas.values() for p in _needs(formula)}
        return found.union(*map(_named_after_wanted, (self.joint, self.together)))

    def plan(self, wanted: int) -> Plan:
        """What to do if some gradients are wanted: bit *i* is that of formula *i*."""
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
    """What a formula for all gradients names besides which are wanted and the first."""
    return () if formula is None else parameters_of(formula)[2:]


def _with_picker(
    formula: Formula | None, kept: tuple[str, ...]
) -> tuple[Formula, Picker] | None:
    """A formula for all gradients, and what takes its arguments from what was kept."""
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
