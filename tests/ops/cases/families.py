"""Families of ops, and who uses each: a section of ``docs/ops.md``.

A *family* is a module of `gradviz.ops` in none of the rooms that all families share. It
is used where a package imports it or a program names one of its ops, as an attribute or
in a string. That may be something else of the same name: a family counts as used rather
than not.
"""

import ast
import fnmatch
import importlib
import pkgutil
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import gradviz.ops
from tests.docs.pages import DOCS, ROOT, blocks

PACKAGE = ROOT / "gradviz"
OPS = "gradviz.ops."

#: Rooms of `gradviz.ops` that hold what all families share.
SHARED = {"conventions", "variables", "dispatch"}

#: Packages that compute with tensors; all others know no ops.
PACKAGES = (
    "autograd",
    "checkpointing",
    "diagnostics",
    "distributed",
    "nn",
    "optim",
    "tensors",
    "utils",
)

#: Pages that list ops: they do not use them.
LISTS = {"ops.md", "parity-tensors.md"}

#: Attributes of Python's own values, and libraries that have ops of the same names.
BUILTIN = {name for kind in (str, bytes, list, dict, set, int) for name in dir(kind)}
OTHER_LIBRARIES = {"np", "numpy", "torch", "math", "cmath", "operator", "itertools"}

#: So exactly are lines counted that few changes of an op change the page.
NEAREST = 50

#: What may be the name of an op, with stars.
NAME = re.compile(r"[a-z][a-z0-9_]{2}[a-z0-9_*]*")

HEAD = """
## Families

A family is one module of `gradviz.ops`. The table names the packages of gradviz that
use its ops, or `examples/`, `benchmarks/`, `docs/`; *other ops* are families that are
in use themselves. Lines are rounded to {nearest}. Nothing but their own tests uses
{num_unused} of the {num} families: {unused_names} of {names} names, about
{unused_lines:,} of {lines:,} lines.

| family | names | lines | used by |
|---|---|---|---|
"""

DISTRIBUTION = """
The unused families could be a distribution of their own. Nothing imports them but
`gradviz.ops.table`, which walks the folder for lists called `PUBLIC`: it would also ask
an entry point, `gradviz.ops`, for modules of other distributions, as
`gradviz.backends.third_party` does for backends. The modules would go on importing the
rooms `conventions`, `variables` and `dispatch`, and a few families that stay, such as
`shapes.broadcasting`. So `PUBLIC`, `names`, `differentiable`, `Variable` and `Operand`
would become an interface between two versions, which they are not today.

Stubs cost the most. `api.pyi`, `functional.pyi`, `linalg.pyi`, `special.pyi` and
`tensor.pyi` list every op, and a stub cannot depend on what is installed: either type
checkers accept names that are missing at run time, which need an error that says what
to install, or they lose them. The tests move with the modules: their cases, which
`tests/ops/cases/table.py` gathers, their comparisons with PyTorch in `tests/parity`,
and their rows on this page. The gain is {unused_lines:,} lines, one part in {part} of
the ops: little beside a second distribution, which has to be built, released and tested
with each version of the first.
"""


class Family(NamedTuple):
    """One module of ops.

    Attributes:
        name: Its path below `gradviz.ops`.
        ops: The public names of its ops.
        num_lines: Of its source, to the nearest `NEAREST`.
        users: Who uses it; empty if only tests do.
    """

    name: str
    ops: frozenset[str]
    num_lines: int
    users: tuple[str, ...]


class Program(NamedTuple):
    """Python source.

    Attributes:
        imports: Modules that it imports, or names from them.
        words: Names of attributes, and strings that may be names; with ``*`` for what a
            formatted string leaves open.
    """

    imports: frozenset[str]
    words: frozenset[str]


def section() -> str:
    """The text of the section."""
    families = sorted(measured())
    unused = [one for one in families if not one.users]
    rows = [
        f"| `{one.name}` | {len(one.ops)} | {one.num_lines:,} | "
        f"{', '.join(one.users) or '**own tests only**'} |\n"
        for one in families
    ]
    lines = sum(one.num_lines for one in families)
    unused_lines = sum(one.num_lines for one in unused)
    head = HEAD.format(
        nearest=NEAREST,
        num=len(families),
        num_unused=len(unused),
        names=len({name for one in families for name in one.ops}),
        unused_names=len({name for one in unused for name in one.ops}),
        lines=lines,
        unused_lines=unused_lines,
    )
    outlook = DISTRIBUTION.format(
        unused_lines=unused_lines, part=round(lines / unused_lines)
    )
    return head + "".join(rows) + outlook


def measured() -> Iterator[Family]:
    """All families, with those who use them."""
    ops, programs = public_names(), dict(users())
    found = {
        name: {user for user, one in programs.items() if uses(one, name, ops[name])}
        for name in ops
    }
    within = {name: parsed(source_of(name).read_text("utf-8")) for name in ops}
    waiting = [name for name, some in found.items() if some]
    while waiting:
        for name in within[waiting.pop()].imports & ops.keys():
            if not found[name]:
                waiting.append(name)
            found[name].add("other ops")
    for name, some in found.items():
        num_lines = len(source_of(name).read_text("utf-8").splitlines())
        rounded = max(round(num_lines / NEAREST), 1) * NEAREST
        yield Family(name.removeprefix(OPS), ops[name], rounded, tuple(sorted(some)))


def uses(program: Program, family: str, ops: frozenset[str]) -> bool:
    """Return whether a program imports a family, or names one of its ops."""
    patterns = [word for word in program.words if "*" in word]
    return (
        family in program.imports
        or bool(program.words & ops)
        or any(fnmatch.filter(ops, pattern) for pattern in patterns)
    )


@cache
def public_names() -> Mapping[str, frozenset[str]]:
    """The public names of each family; ``x.sin_`` and ``gv.sin`` are one."""
    found = {}
    for one in pkgutil.walk_packages(gradviz.ops.__path__, OPS):
        _, _, room, *module_name = one.name.split(".")
        if one.ispkg or not module_name or room in SHARED:
            continue
        module = importlib.import_module(one.name)
        found[one.name] = frozenset(
            public.name if public.name.endswith("__") else public.name.rstrip("_")
            for public in getattr(module, "PUBLIC", ())
        )
    return found


def users() -> Iterator[tuple[str, Program]]:
    """Packages, programs and pages, by what the table calls them."""
    for name in PACKAGES:
        yield name, joined(sources(PACKAGE / name))
    for name in ("examples", "benchmarks"):
        yield name, joined(sources(ROOT / name))
    pages = [page for page in DOCS.glob("*.md") if page.name not in LISTS]
    yield (
        "docs",
        joined(
            block.source
            for page in [ROOT / "README.md", *pages]
            for block in blocks(page)
        ),
    )


def sources(folder: Path) -> Iterator[str]:
    """The sources of all modules in a folder."""
    for file in sorted(folder.rglob("*.py")):
        yield file.read_text(encoding="utf-8")


def joined(texts: Iterable[str]) -> Program:
    """Several sources as one program."""
    parts = [parsed(text) for text in texts]
    return Program(
        frozenset().union(*(one.imports for one in parts)),
        frozenset().union(*(one.words for one in parts)),
    )


def parsed(source: str) -> Program:
    """One source."""
    imports, words = set(), set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.ImportFrom(module=str(module), names=names):
                imports |= {module, *(f"{module}.{one.name}" for one in names)}
            case ast.Import(names=names):
                imports |= {one.name for one in names}
            case ast.Attribute(ast.Name(library)) if library in OTHER_LIBRARIES:
                pass
            case ast.Attribute(attr=word) | ast.Constant(str(word)):
                words.add(word.rstrip("_"))
            case ast.JoinedStr(parts):
                words.add("".join(map(opened, parts)))
    return Program(
        frozenset(imports),
        frozenset(word for word in words - BUILTIN if NAME.fullmatch(word)),
    )


def opened(part: ast.expr) -> str:
    """Part of a formatted string: its text, or a star."""
    return part.value if isinstance(part, ast.Constant) else "*"


def source_of(family: str) -> Path:
    """The file of a family."""
    return PACKAGE.parent / f"{family.replace('.', '/')}.py"
