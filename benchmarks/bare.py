"""gradviz without its probes: the same sources with every site of a report taken out.

What remains is what the engine would cost if nobody could watch it, so a race between
the two in one process says what the possibility costs while nobody does.
"""

import ast
import importlib
import re
import sys
import tempfile
from pathlib import Path
from types import ModuleType

import gradviz

_NAMES = {"probe", "listener"}


def bare_library() -> ModuleType:
    """Import a copy of gradviz, named `gradviz_bare`, that cannot report anything."""
    source = Path(gradviz.__file__).parent
    target = Path(tempfile.mkdtemp(prefix="gradviz-bench-")) / "gradviz_bare"
    for path in source.rglob("*.py"):
        tree = ast.parse(path.read_text())
        if path.parent.name in ("engine", "recording"):
            tree = ast.fix_missing_locations(_Strip().visit(tree))
        copy = target / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(re.sub(r"\bgradviz\b", "gradviz_bare", ast.unparse(tree)))
    sys.path.insert(0, str(target.parent))
    return importlib.import_module("gradviz_bare")


class _Strip(ast.NodeTransformer):
    """Removes every statement that depends on somebody listening."""

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        if not _asks_for_listener(node.test):
            return self.generic_visit(node)
        rest = [self.visit(statement) for statement in node.orelse]
        return rest or ast.Pass()

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        if _asks_for_listener(node.test):
            return self.visit(node.orelse)
        return self.generic_visit(node)


def _asks_for_listener(test: ast.expr) -> bool:
    for node in ast.walk(test):
        if isinstance(node, ast.Name) and node.id in _NAMES:
            return True
        if isinstance(node, ast.Attribute) and node.attr == "probe":
            return True
        if isinstance(node, ast.Attribute) and node.attr == "current":
            return isinstance(node.value, ast.Name) and node.value.id == "trace"
    return False
