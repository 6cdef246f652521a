"""Signatures of public functions, from their sources, wrappers included.

Ops are made by doors and wrapped by what lets them be called in further ways, which
leaves nothing of a signature at run time. So wrappers are taken off one by one, each
with what it adds, until there is a function whose source has annotations.
"""

import ast
import copy
import inspect
import textwrap
import types
from collections.abc import Callable
from typing import Any, Final, NamedTuple, get_overloads

#: A function of any kind.
Function = Callable[..., Any]


class Signature(NamedTuple):
    """One way to call a function, in the words of its source.

    Attributes:
        module: Where the names in the annotations are looked up.
        arguments: What it takes.
        returns: What it returns.
    """

    module: str
    arguments: ast.arguments
    returns: ast.expr


#: Parameters that, if true, have a function return several tensors.
_FLAGS: Final = {
    "as_tuple": "tuple[Value, ...]",
    "return_counts": "tuple[Value, ...]",
    "return_indices": "tuple[Value, Value]",
    "return_inverse": "tuple[Value, ...]",
}


def signatures_of(function: Function) -> list[Signature]:
    """All ways to call a function."""
    code = getattr(function, "__code__", None)
    kind = code.co_qualname.replace(".<locals>", "") if code else ""
    cells = inspect.getclosurevars(function).nonlocals if code else {}
    if kind in _WRAPPERS:
        cell, change = _WRAPPERS[kind]
        ways = signatures_of(cells[cell])
        return [made for way in ways for made in change(way, cells)]
    if kind in _DOORS:
        return [_written(_DOORS[kind], function)]
    if kind in _FORWARDS:
        return [_public(_own(cells["forward"]))]
    overloads = get_overloads(function)
    ways = [_own(one) for one in overloads or [function]]
    return [made for way in ways for made in _by_flags(way)]


def is_written_out(function: Function) -> bool:
    """Return whether a function is called as its ``def`` says, wrappers aside."""
    return (
        isinstance(function, types.FunctionType)
        and "<locals>" not in function.__code__.co_qualname
        and not hasattr(function, "__wrapped__")
    )


def _own(function: Function) -> Signature:
    """Return the signature in the ``def`` of a function."""
    definition = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(definition, ast.FunctionDef), function
    assert isinstance(function, types.FunctionType)
    module = function.__globals__["__name__"]
    returns = definition.returns or ast.Constant(None)
    return Signature(module, definition.args, returns)


def _written(source: str, function: Function) -> Signature:
    definition = ast.parse(source).body[0]
    assert isinstance(definition, ast.FunctionDef)
    assert isinstance(function, types.FunctionType)
    assert definition.returns
    module = function.__globals__["__name__"]
    return Signature(module, definition.args, definition.returns)


def _public(signature: Signature) -> Signature:
    """A forward function's signature: ``x`` and ``y`` are `input` and `other`."""
    arguments = copy.deepcopy(signature.arguments)
    names = [one.arg for one in arguments.args]
    for one, public in zip(arguments.args, ("input", "other"), strict=False):
        if one.arg in ("x", "y") and public not in names:
            one.arg = public
    return signature._replace(arguments=arguments)


def _keyword(
    arguments: ast.arguments,
    name: str,
    annotation: str,
    default: ast.expr | None = None,
) -> None:
    arguments.kwonlyargs.append(_argument(name, annotation))
    arguments.kw_defaults.append(default or ast.Constant(None))


def _argument(name: str, annotation: str) -> ast.arg:
    return ast.arg(name, ast.parse(annotation, mode="eval").body)


def _by_flags(signature: Signature) -> list[Signature]:
    """One without what flags add to the result, one for each flag, one for any."""
    every = signature.arguments.args + signature.arguments.kwonlyargs
    flags = [one.arg for one in every if one.arg in _FLAGS]
    if not flags or ast.unparse(signature.returns) != "Value":
        return [signature]
    plain = copy.deepcopy(signature.arguments)
    for one in plain.args + plain.kwonlyargs:
        if one.arg in _FLAGS:
            one.annotation = _argument("", "Literal[False]").annotation
    ways = [signature._replace(arguments=plain)]
    for flag in flags:
        arguments = copy.deepcopy(signature.arguments)
        by_name = {one.arg: one for one in arguments.args + arguments.kwonlyargs}
        asked = by_name[flag]
        if asked in arguments.args:
            _ask_by_name(arguments, asked)
        arguments.kw_defaults[arguments.kwonlyargs.index(asked)] = None
        asked.annotation = _argument("", "Literal[True]").annotation
        returns = _argument("", _FLAGS[flag]).annotation
        assert returns
        ways.append(signature._replace(arguments=arguments, returns=returns))
    either = _argument("", f"Value | {_FLAGS[flags[0]]}").annotation
    assert either
    return [*ways, signature._replace(returns=either)]


def _ask_by_name(arguments: ast.arguments, first: ast.arg) -> None:
    """Let an argument, and those after it, be given by name only."""
    place = arguments.args.index(first)
    later = arguments.args[place:]
    num_required = len(arguments.args) - len(arguments.defaults)
    defaults = [None] * num_required + arguments.defaults
    arguments.kwonlyargs = later + arguments.kwonlyargs
    arguments.kw_defaults = defaults[place:] + arguments.kw_defaults
    arguments.args = arguments.args[:place]
    arguments.defaults = [one for one in defaults[:place] if one]


def _with_out(signature: Signature) -> Signature:
    returned = ast.unparse(signature.returns)
    is_one = returned in ("Value", "Array", "Variable", "Tensor")
    arguments = copy.deepcopy(signature.arguments)
    if "out" not in [one.arg for one in arguments.kwonlyargs + arguments.args]:
        _keyword(
            arguments, "out", "Value | None" if is_one else "tuple[Value, ...] | None"
        )
    return signature._replace(arguments=arguments)


def _with_numpy_names(signature: Signature) -> list[Signature]:
    """With NumPy's ``axis`` and ``keepdims`` for `dim` and `keepdim`."""
    arguments = copy.deepcopy(signature.arguments)
    by_name = {one.arg: one for one in arguments.args + arguments.kwonlyargs}
    if "keepdim" in by_name:
        _keyword(arguments, "keepdims", "bool", ast.Constant(False))
    if "dim" not in by_name:
        return [signature]
    axis = ast.arg("axis", by_name["dim"].annotation)
    required = arguments.args[: len(arguments.args) - len(arguments.defaults)]
    if by_name["dim"] not in required:
        arguments.kwonlyargs.append(axis)
        arguments.kw_defaults.append(ast.Constant(...))
        return [signature._replace(arguments=arguments)]
    other = copy.deepcopy(arguments)
    dim = other.args[required.index(by_name["dim"])]
    _ask_by_name(other, dim)
    dim.arg = "axis"
    return [
        signature._replace(arguments=arguments),
        signature._replace(arguments=other),
    ]


def _with_old_names(signature: Signature, order: tuple[str, ...]) -> Signature:
    """With ``size_average`` and ``reduce``, by position where PyTorch has them."""
    arguments = copy.deepcopy(signature.arguments)
    keywords = dict(
        zip(
            [one.arg for one in arguments.kwonlyargs],
            zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
            strict=True,
        )
    )
    for name in order:
        argument, default = keywords.pop(
            name, (_argument(name, "bool | None"), ast.Constant(None))
        )
        arguments.args.append(argument)
        arguments.defaults.append(default or ast.Constant(...))
    arguments.kwonlyargs = [one for one, _ in keywords.values()]
    arguments.kw_defaults = [default for _, default in keywords.values()]
    return signature._replace(arguments=arguments)


def _changing(signature: Signature) -> Signature:
    """Return the signature of an op that changes its first argument, `input`."""
    arguments = copy.deepcopy(signature.arguments)
    arguments.args[0] = _argument("input", "Variable")
    returns = _argument("", "Variable").annotation
    assert returns
    return signature._replace(arguments=arguments, returns=returns)


def _of_operator(signature: Signature) -> Signature:
    arguments = copy.deepcopy(signature.arguments)
    arguments.args, arguments.defaults = arguments.args[:2], []
    arguments.kwonlyargs, arguments.kw_defaults = [], []
    arguments.args[1].arg = "other"
    return signature._replace(arguments=arguments)


def _one_by_one(signature: Signature) -> Signature:
    arguments = copy.deepcopy(signature.arguments)
    arguments.args, arguments.defaults = arguments.args[:1], []
    arguments.kwonlyargs, arguments.kw_defaults = [], []
    arguments.vararg = _argument("indices", "int")
    return signature._replace(arguments=arguments)


#: What wraps functions, by its qualified name: which variable is what it wraps, and
#: what it makes of a signature.
_WRAPPERS: Final[dict[str, tuple[str, Callable[..., list[Signature]]]]] = {
    "takes_out.call": ("function", lambda way, _: [_with_out(way)]),
    "fills_out.make": ("function", lambda way, _: [_with_out(way)]),
    "numpy_names.renaming": ("function", lambda way, _: _with_numpy_names(way)),
    "old_names.decorate.renaming": (
        "function",
        lambda way, cells: [_with_old_names(way, cells["order"])],
    ),
    "in_place.change_by": ("op", lambda way, _: [_changing(way)]),
    "becoming.become": ("op", lambda way, _: [_changing(way)]),
    "by_input.call": ("method", lambda way, _: [_changing(way)]),
    "operator.operate": ("op", lambda way, _: [_of_operator(way)]),
    "_reflected.<lambda>": ("op", lambda way, _: [_of_operator(way)]),
    "splitting_method.method": (
        "function",
        lambda way, _: [way, _one_by_one(way)],
    ),
}

#: Doors whose ops all take the same.
_DOORS: Final = {
    "unary.op": "def op(input: Array) -> Array: ...",
    "binary.op": "def op(input: Operand, other: Operand) -> Array: ...",
}

#: Doors whose ops take what their forward function takes.
_FORWARDS: Final = frozenset(
    {"_of_one.op", "_of_two.op", "_of_several.op", "_of_view.op", "_with_results.op"}
)
