"""Rules for the package's files; `lint-imports` checks the imports."""

import ast
import re
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

# What is in any call that is unsafe: so few files are looked through call by call.
UNSAFE_WORDS = {*UNSAFE_CALLS, "load", "allow_pickle"}

# Each stands on a line of its own, which ruff sees to; so may words of a docstring, and
# then they are asked about in vain.
IMPORT = re.compile(r"^\s*(?:import|from)\s+(\w+)", re.MULTILINE)

# The one place that runs the user's program, because the user said so.
RUNS_PROGRAMS = PACKAGE / "cli" / "run" / "program.py"

# What only pytest loads.
PLUGIN = {PACKAGE / "pytest_plugin.py", PACKAGE / "capture/recorded_tests.py"}

# The engine takes threads, queues and clocks from one seam; node.py's counter belongs
# to the forward pass, which no scheduler of tests controls.
SEAM = {PACKAGE / "engine/graph/sync.py", PACKAGE / "engine/graph/node.py"}
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
    """Facts about a file, kept because there are too many files to keep parsed."""

    imported: set[str]
    unsafe: list[str]
    names: list[str]


@cache
def contents(path: Path) -> Contents:
    source = path.read_text("utf-8")
    tree = ast.parse(source)
    may_be_unsafe = any(word in source for word in UNSAFE_WORDS)
    unsafe = [
        ast.unparse(node.func)
        for node in (ast.walk(tree) if may_be_unsafe else ())
        if isinstance(node, ast.Call) and is_unsafe(node)
    ]
    return Contents({*IMPORT.findall(source)}, unsafe, [*named(tree)])


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
    """Return the files that import one of the modules."""
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
