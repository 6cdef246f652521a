"""Meaning of the names in an annotation, and their names in a stub."""

import ast
import builtins
import inspect
import sys
import types
import typing
from collections.abc import Collection, Mapping
from functools import cache
from typing import Final, NamedTuple


class Origin(NamedTuple):
    """The definition of a name.

    Attributes:
        module: Its module.
        name: Its name there; empty for the module itself.
    """

    module: str
    name: str


TENSOR: Final = Origin("gradviz.tensors.tensor", "Tensor")

#: Ops say what they take and return in words that mean anything to a type checker, for
#: they cannot name the class of tensors. This is what the words mean to a user.
WORDS: Final = {
    "Array": TENSOR,
    "Value": TENSOR,
    "Variable": TENSOR,
    "Operand": Origin(TENSOR.module, "_Operand"),
    "Subscript": Origin(TENSOR.module, "_Subscript"),
}


@cache
def _definitions(module: str) -> dict[str, Origin]:
    """The names at the top of a module, and where each is from."""
    found = {}
    for node in ast.walk(ast.parse(inspect.getsource(sys.modules[module]))):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                found[alias.asname or alias.name] = (
                    Origin(submodule, "")
                    if inspect.ismodule(sys.modules.get(submodule))
                    else Origin(node.module, alias.name)
                )
        elif isinstance(node, ast.Import):
            for alias in node.names:
                found[alias.asname or alias.name] = Origin(alias.name, "")
    return found


def origin_of(module: str, name: str) -> Origin:
    """Return the origin of the object that `module` calls `name`."""
    origin = _definitions(module).get(name)
    if origin is None:
        for where in (sys.modules[module], builtins, typing):
            if hasattr(where, name):
                return Origin(where.__name__, name)
        raise NameError(f"{name} in an annotation of {module}")
    if not origin.name or not origin.module.startswith("gradviz."):
        return origin
    return origin_of(*origin)


class Names:
    """The names of one stub.

    Args:
        module: Whose stub it is.
        taken: What it defines, and builtins of the same names cannot be called there.
        offered: What it hands on from elsewhere.
    """

    def __init__(
        self,
        module: str,
        taken: Collection[str],
        offered: Mapping[str, Origin] = types.MappingProxyType({}),
    ) -> None:
        self.module = module
        self._taken = taken
        self._offered = offered
        self._imported: dict[str, Origin] = {}

    def name_of(self, origin: Origin) -> str:
        """Return the name of an object here; import it if need be."""
        module, name = origin
        if module == self.module or self._offered.get(name) == origin:
            return name
        if not name:
            self._imported["np" if module == "numpy" else module] = origin
            return "np" if module == "numpy" else module
        if module == "builtins":
            if name not in self._taken:
                return name
            return f"{self.name_of(Origin('builtins', ''))}.{name}"
        is_free = name not in self._taken and name not in dir(builtins)
        own = name if is_free or name.startswith("_") else f"_{name}"
        if self._imported.setdefault(own, origin) != origin:
            own = f"_{module.rpartition('.')[2]}_{name}"
            self._imported[own] = origin
        return own

    def imports(self) -> list[str]:
        """The lines that import what was named."""
        lines = []
        for own, (module, name) in self._imported.items():
            if name:
                renamed = "" if own == name else f" as {own}"
                lines.append(f"from {module} import {name}{renamed}")
            else:
                lines.append(f"import {module}" + (" as np" if own == "np" else ""))
        return sorted(lines)


class Translation(ast.NodeTransformer):
    """An annotation of one module in the names of a stub.

    Args:
        module: Where the annotation stands.
        names: Those of the stub.

    Attributes:
        has_words: Whether one of `WORDS` was there.
    """

    def __init__(self, module: str, names: Names) -> None:
        self._module = module
        self._names = names
        self.has_words = False
        self._with_none = {"Any", "object"}

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in WORDS:
            self.has_words = True
            return self._named(WORDS[node.id])
        return self._named(origin_of(self._module, node.id))

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if isinstance(node.value, ast.Name):
            origin = origin_of(self._module, node.value.id)
            if not origin.name and origin.module.startswith("gradviz."):
                return self._named(origin_of(origin.module, node.attr))
            if not origin.name and origin.module in ("numpy", "builtins"):
                return self._named(Origin(origin.module, node.attr))
        self.generic_visit(node)
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if isinstance(node.value, str):
            quoted: ast.expr = self.visit(ast.parse(node.value, mode="eval").body)
            return quoted
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        if isinstance(node.value, ast.Name) and node.value.id == "Literal":
            node.value = self.visit(node.value)
            return node
        self.generic_visit(node)
        return node

    def or_none(self, annotation: ast.expr) -> ast.expr:
        """A translated annotation, of what may also be None."""
        text = ast.unparse(annotation)
        if text in self._with_none or text.endswith("None"):
            return annotation
        return ast.BinOp(annotation, ast.BitOr(), ast.Constant(None))

    def _named(self, origin: Origin) -> ast.expr:
        value = getattr(sys.modules.get(origin.module), origin.name, None)
        if types.NoneType in typing.get_args(value):
            self._with_none.add(self._names.name_of(origin))
        if origin.module == "numpy" and origin.name:
            return ast.Attribute(
                ast.Name(self._names.name_of(Origin("numpy", ""))), origin.name
            )
        return ast.parse(self._names.name_of(origin), mode="eval").body
