"""What no file of the package may do; who may import whom is for ``lint-imports``."""

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

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


class Contents(NamedTuple):
    """What is asked of a file, of which there are too many to keep them parsed."""

    imported: set[str]
    unsafe: list[str]
    names: list[str]


@cache
def contents(path: Path) -> Contents:
    tree = ast.parse(path.read_bytes())
    nodes = list(ast.walk(tree))
    unsafe = [
        ast.unparse(node.func)
        for node in nodes
        if isinstance(node, ast.Call) and is_unsafe(node)
    ]
    return Contents({*imported(nodes)}, unsafe, [*named(tree)])


def imported(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.split(".")[0]


def is_unsafe(call: ast.Call) -> bool:
    match call.func:
        case ast.Name(name) if name in UNSAFE_CALLS:
            return True
        case ast.Attribute(ast.Name(module), method):
            if (module, method) in UNSAFE_METHODS:
                return True
    return any(
        keyword.arg == "allow_pickle" and ast.literal_eval(keyword.value) is not False
        for keyword in call.keywords
    )


def relative(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def importers(paths: Iterable[Path], modules: set[str]) -> list[str]:
    """Which of the files import one of the modules."""
    return [relative(path) for path in paths if modules & contents(path).imported]


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


def test_no_file_turns_foreign_bytes_into_code() -> None:
    unsafe = {relative(path): contents(path).unsafe for path in FILES}
    del unsafe[relative(RUNS_PROGRAMS)]

    assert importers(FILES, UNSAFE_MODULES) == []
    assert {path: calls for path, calls in unsafe.items() if calls} == {}


def test_no_file_needs_the_tests_or_what_runs_them() -> None:
    """They do not come with the package, and ``lint-imports`` knows nothing of them."""
    assert importers({*FILES} - PLUGIN, {"tests", "pytest", "hypothesis"}) == []


def test_the_program_runner_executes_in_one_place() -> None:
    assert contents(RUNS_PROGRAMS).unsafe == ["exec"]


def test_the_engine_waits_and_locks_only_through_its_seam() -> None:
    assert importers({*PACKAGE.glob("engine/**/*.py")} - SEAM, BEHIND_THE_SEAM) == []


def test_a_class_or_alias_has_a_name_of_its_own():
    names = Counter(name for path in FILES for name in contents(path).names)

    assert {name for name, count in names.items() if count > 1} == {*NAMESAKES}
