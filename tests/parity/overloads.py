"""The forms in which PyTorch's functions may be called, read from its stubs."""

import ast
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tests.parity.worlds import torch


class Parameter(NamedTuple):
    """One of a form.

    Attributes:
        name: Its name.
        kind: "place", "name" or "any number".
        annotation: As text.
        has_default: Whether it may be left out.
    """

    name: str
    kind: str
    annotation: str
    has_default: bool


def functions() -> dict[str, list[list[Parameter]]]:
    """The forms of ``torch``'s functions."""
    return _forms("_VariableFunctions.pyi", None)


def methods() -> dict[str, list[list[Parameter]]]:
    """The forms of tensors' methods, with the tensor first."""
    return {
        name: [
            [Parameter("self", "place", "Tensor", False)]
            + [one for one in form if one.name != "self"]
            for form in forms
        ]
        for name, forms in _forms("__init__.pyi", "TensorBase").items()
    }


def _forms(file: str, owner: str | None) -> dict[str, list[list[Parameter]]]:
    path = Path(torch.__file__).parent / "_C" / file
    body = ast.parse(path.read_text()).body
    if owner:
        (cls,) = (
            one for one in body if isinstance(one, ast.ClassDef) and one.name == owner
        )
        body = cls.body
    forms: dict[str, list[list[Parameter]]] = {}
    for one in body:
        if isinstance(one, ast.FunctionDef) and one.name[0] != "_":
            forms.setdefault(one.name, []).append(_parameters(one.args))
    return forms


def _parameters(args: ast.arguments) -> list[Parameter]:
    placed = args.posonlyargs + args.args
    first_default = len(placed) - len(args.defaults)
    found = [
        Parameter(one.arg, "place", _text(one), number >= first_default)
        for number, one in enumerate(placed)
    ]
    if args.vararg:
        found.append(
            Parameter(args.vararg.arg, "any number", _text(args.vararg), False)
        )
    return found + [
        Parameter(one.arg, "name", _text(one), default is not None)
        for one, default in zip(args.kwonlyargs, args.kw_defaults, strict=True)
    ]


def _text(one: ast.arg) -> str:
    return ast.unparse(one.annotation) if one.annotation else ""


#: What is given for a parameter of that name, whatever its type.
_BY_NAME: dict[str, Any] = {
    "dim0": 0,
    "dim1": 0,
    "rounding_mode": "floor",
    "indexing": "ij",
    "reduce": "sum",
    "pin_memory": False,
    "as_tuple": True,
    "output_size": None,
}


def value(lib: Any, one: Parameter, dtype: str) -> Any:
    """Something of the type that a parameter has, the same in both libraries."""
    kind = one.annotation
    if one.name in _BY_NAME:
        return _BY_NAME[one.name]
    if "Tensor" in kind:
        return _tensors(lib, one, dtype)
    of_library = {
        "Generator": None,
        "memory_format": lib.contiguous_format,
        "layout": lib.strided,
        "dtype": lib.float64,
    }
    for part, given in of_library.items():
        if part in kind:
            return given
    plain = {
        "device": "cpu",
        "bool": True,
        "size": (0,) if one.name in {"dim", "dims"} else (2, 2),
        "sequence": (0,) if one.name in {"dim", "dims"} else (2, 2),
        "int": 0 if one.name in {"dim", "offset", "diagonal"} else 1,
        "str": "mean",
    }
    found = [given for part, given in plain.items() if part in kind.lower()]
    return found[0] if found else 2 if dtype == "int64" else 0.5


def _tensors(lib: Any, one: Parameter, dtype: str) -> Any:
    if one.name in {"index", "indices"}:
        return lib.tensor(np.zeros((2, 2), "int64"))
    if one.name in {"mask", "condition"}:
        return lib.tensor(np.eye(2, dtype=bool))
    tensor = lib.tensor(np.arange(1, 5).reshape(2, 2).astype(dtype))
    is_several = "tuple" in one.annotation or "Sequence" in one.annotation
    return [tensor, tensor] if is_several else tensor
