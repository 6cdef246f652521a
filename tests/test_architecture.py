"""What no file of the package may do; who may import whom is for ``lint-imports``."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import gradviz.errors

PACKAGE = Path(gradviz.errors.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))

# What turns bytes of a stranger into code.
UNSAFE_MODULES = {"pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle"}
UNSAFE_CALLS = {"eval", "exec", "__import__"}
UNSAFE_METHODS = {("yaml", "load"), ("torch", "load"), ("cupy", "load")}

# The one place that runs the user's program, because the user said so.
RUNS_PROGRAMS = PACKAGE / "cli" / "program.py"

# What only pytest loads.
PLUGIN = {PACKAGE / "pytest_plugin.py", PACKAGE / "recorded_tests.py"}

# The engine takes threads, queues and clocks from one seam; node.py's counter belongs
# to the forward pass, which no scheduler of tests controls.
SEAM = {PACKAGE / "engine" / "sync.py", PACKAGE / "engine" / "node.py"}
BEHIND_THE_SEAM = {"threading", "queue", "time", "_thread", "asyncio", "concurrent"}

# Names that stand for more than one thing, and why.
NAMESAKES = {
    "AccumulateGrad": "PyTorch's name of a node; that of tensors is the engine's too",
    "Event": "PyTorch's, of any device and of one type; and what a trace is made of",
    "Node": "PyTorch's name in torch.autograd.graph of what every node is",
    "Stream": "PyTorch's, of any device and of one type",
    "Variable": "PyTorch's old name of a leaf; tensors are variables",
}


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.split(".")[0]


def called(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def relative(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def named(tree: ast.Module) -> Iterator[str]:
    """The classes and aliases of a module; its type variables are nobody else's."""
    for node in tree.body:
        match node:
            case ast.ClassDef(name):
                yield name
            case ast.Assign([ast.Name(name)], value) | ast.AnnAssign(
                ast.Name(name), value=value
            ):
                if isinstance(value, ast.Call) and ast.unparse(value.func) in (
                    "TypeVar",
                    "ParamSpec",
                ):
                    continue
                if name.lstrip("_")[:1].isupper() and not name.isupper():
                    yield name


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_no_file_turns_foreign_bytes_into_code(path: Path) -> None:
    tree = ast.parse(path.read_bytes())

    assert UNSAFE_MODULES.isdisjoint(imported(tree))
    for call in called(tree):
        match call.func:
            case ast.Name(name):
                assert name not in UNSAFE_CALLS or path == RUNS_PROGRAMS
            case ast.Attribute(ast.Name(module), method):
                assert (module, method) not in UNSAFE_METHODS
        for keyword in call.keywords:
            if keyword.arg == "allow_pickle":
                assert ast.literal_eval(keyword.value) is False


@pytest.mark.parametrize("path", sorted({*FILES} - PLUGIN), ids=relative)
def test_no_file_needs_the_tests_or_what_runs_them(path: Path) -> None:
    """They do not come with the package, and ``lint-imports`` knows nothing of them."""
    tree = ast.parse(path.read_bytes())

    assert {"tests", "pytest", "hypothesis"}.isdisjoint(imported(tree))


def test_the_program_runner_executes_in_one_place() -> None:
    tree = ast.parse(RUNS_PROGRAMS.read_bytes())

    names = [call.func.id for call in called(tree) if isinstance(call.func, ast.Name)]
    assert names.count("exec") == 1


@pytest.mark.parametrize(
    "path", sorted({*PACKAGE.glob("engine/**/*.py")} - SEAM), ids=relative
)
def test_the_engine_waits_and_locks_only_through_its_seam(path: Path) -> None:
    tree = ast.parse(path.read_bytes())

    assert BEHIND_THE_SEAM.isdisjoint(imported(tree))


def test_a_class_or_alias_has_a_name_of_its_own():
    names = Counter(
        name for path in FILES for name in named(ast.parse(path.read_bytes()))
    )

    assert {name for name, count in names.items() if count > 1} == {*NAMESAKES}
