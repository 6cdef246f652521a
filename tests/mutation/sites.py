"""Changes to a module that make it do something else.

A *site* is a place in the syntax tree and one way to change it there. Texts,
annotations and decorators are left alone: that changes what is said, not what is done.
"""

import ast
import copy
import functools
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

_SWAPPED: Final[dict[type[ast.AST], type[ast.AST]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
_LEFT_OUT: Final = (ast.Expr, ast.Raise, ast.Break, ast.Continue, ast.Delete)
_STORED: Final = (ast.Attribute, ast.Subscript)
_ALONE: Final = ("annotation", "returns", "decorator_list", "type_params", "bases")


class Site(NamedTuple):
    """One change.

    Attributes:
        line: Where it is.
        what: The kind of change.
        number: Its place among all sites of the module.
    """

    line: int
    what: str
    number: int


def sites(source: str) -> list[Site]:
    """Every change that can be made to a module."""
    found = _changes(ast.parse(source))
    return [Site(line, what, number) for number, (line, what, _) in enumerate(found)]


def changed(source: str, site: Site) -> str:
    """The module with one change made to it."""
    tree = ast.parse(source)
    for number, (_, _, change) in enumerate(_changes(tree)):
        if number == site.number:
            change()
            return ast.unparse(ast.fix_missing_locations(tree))
    raise ValueError(f"no site {site.number} in this module")


def _changes(tree: ast.AST) -> Iterator[tuple[int, str, Any]]:
    """Line, kind, and a function that makes the change in the tree."""
    for node in _walk(tree):
        if (found := _of(node)) is not None:
            what, change = found
            yield node.lineno, what, functools.partial(change, node)
        for body in _bodies(node):
            for index, statement in enumerate(body):
                if (instead := _instead_of(statement)) is not None:
                    what = f"no {type(statement).__name__.lower()}"
                    place = slice(index, index + 1)
                    yield (
                        statement.lineno,
                        what,
                        functools.partial(body.__setitem__, place, instead),
                    )


def _instead_of(statement: ast.stmt) -> list[ast.stmt] | None:
    """Return replacements of a whole statement, None if there are none."""
    match statement:
        case ast.With() if not any(one.optional_vars for one in statement.items):
            return statement.body
        case ast.Assign(targets=[target]) if isinstance(target, _STORED):
            return [ast.Pass()]
        case _ if isinstance(statement, _LEFT_OUT) and not _is_text(statement):
            return [ast.Pass()]
        case _:
            return None


def _of(node: Any) -> tuple[str, Callable[[Any], None]] | None:
    """Return a change to a node itself, with its description."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in _SWAPPED:
            return _swap_name(op), _swap_compare
        case ast.BinOp() | ast.BoolOp() | ast.AugAssign() if type(node.op) in _SWAPPED:
            return _swap_name(node.op), _swap
        case ast.If() | ast.While() | ast.IfExp():
            return "not the condition", _negate
        case ast.Constant(value=bool(value)):
            return f"not {value}", _flip
        case ast.Constant(value=int(value)):
            return f"{value} + 1", _more
        case ast.Return(value=ast.Constant(value=None)):
            return None
        case ast.Return(value=ast.expr()):
            return "return None", _return_none
        case _:
            return None


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    for name, value in ast.iter_fields(node):
        if name in _ALONE:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _walk(child)


def _bodies(node: ast.AST) -> Iterator[list[ast.stmt]]:
    if isinstance(node, ast.Module | ast.ClassDef):
        return
    for name in ("body", "orelse", "finalbody"):
        body = getattr(node, name, None)
        if isinstance(body, list):
            yield body


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _swap_name(op: ast.AST) -> str:
    return f"{type(op).__name__} -> {_SWAPPED[type(op)].__name__}"


def _swap_compare(node: ast.Compare) -> None:
    node.ops = [_SWAPPED[type(node.ops[0])]()]  # type: ignore[list-item]


def _swap(node: Any) -> None:
    node.op = _SWAPPED[type(node.op)]()


def _negate(node: Any) -> None:
    node.test = ast.UnaryOp(ast.Not(), copy.copy(node.test))


def _flip(node: ast.Constant) -> None:
    node.value = not node.value


def _more(node: ast.Constant) -> None:
    node.value += 1  # type: ignore[operator]


def _return_none(node: ast.Return) -> None:
    node.value = ast.Constant(None)
