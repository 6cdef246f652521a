"""The rooms of the package, as CONTRIBUTING's map and their docstrings show them."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

import gradviz.errors

PACKAGE = Path(gradviz.errors.__file__).parent
CONTRIBUTING = Path(__file__).parents[1] / "CONTRIBUTING.md"
ROOMS = sorted(path.parent for path in PACKAGE.rglob("*/__init__.py"))

#: First words that leave a reader to guess which thing a module is.
QUESTIONS = {"how", "what", "when", "where", "whether", "which", "who", "whom", "why"}

#: Words that a newcomer looks for -> the module that has it.
WHERE_IS = {
    "ready queue": "engine/tasks/ready_queue",
    "checksum": "trace/format/frames",
    "`.grad`": "engine/graph/basic_nodes",
    "server": "view/server",
    "ready order": "ready_order",
    "reentrant": "engine/threads/thread_pool",
    "hook calls": "engine/threads/hook_calls",
    "grad mode": "autograd/grad_mode",
    "critical path": "analysis/causes/critical_path",
    "--pass": "analysis/tables/passes",
    "replaced": "pytorch/watching/watcher",
    "saved variable": "ops/variables/saved_variable",
    "version": "ops/variables/version",
    "promotion": "ops/conventions/promotion",
    "settings": "cli/console/settings",
    "PNG": "render/conversion",
    "latency": "backends/simulated/devices/latency",
    "lost": "trace/format/model",
    "colors": "render/style",
    "clocks": "trace/merging/compared_clocks",
    "hooks of modules": "nn/calling",
    "clips": "nn/gradients",
}


def docstring(room: Path) -> str:
    return docstring_of(room / "__init__.py")


def docstring_of(module: Path) -> str:
    """Return a module's docstring, for which its first statement is enough."""
    source = module.read_text("utf-8")
    opening = source.find('"""') + 3
    return ast.get_docstring(ast.parse(source[: source.find('"""', opening) + 3])) or ""


def members(room: Path) -> set[str]:
    """Names of a room's modules, and of the rooms inside of it."""
    rooms = {path.parent.name for path in room.glob("*/__init__.py")}
    return rooms | {path.stem for path in room.glob("*.py")} - {"__init__"}


def on_the_map() -> set[str]:
    """Paths, below `gradviz`, of all packages and modules that the map names.

    An entry is one package with those inside of it, or several modules.
    """
    text = CONTRIBUTING.read_text(encoding="utf-8")
    house = re.search(
        r"^## The house\n+```\ngradviz/\n((?: .*\n)+)```", text, re.MULTILINE
    )
    assert house is not None
    paths = set()
    for entry in re.findall(r"^  \S.*\n(?:   +.*\n)*", house[1], re.MULTILINE):
        first, *others = re.findall(r"\w+(?:/|\.py)", entry)
        folder = first if first.endswith("/") else ""
        paths |= {first.rstrip("/"), *(folder + name.rstrip("/") for name in others)}
    return paths


def in_the_package() -> set[str]:
    """Packages in `gradviz` and one level below, and the modules beside the first."""
    packages = {str(room.relative_to(PACKAGE)) for room in ROOMS}
    return {path for path in packages if path.count("/") < 2} | {
        path.name for path in PACKAGE.glob("*.py") if not path.stem.startswith("_")
    }


def name(room: Path) -> str:
    return ".".join(room.relative_to(PACKAGE).parts)


def test_the_map_of_the_house_names_every_room_and_none_that_does_not_exist():
    assert on_the_map() == in_the_package()


def test_no_three_modules_of_the_package_have_the_same_name():
    names = Counter(path.stem for path in PACKAGE.rglob("*.py"))
    del names["__init__"]

    assert [name for name, count in names.items() if count > 2] == []


def test_a_module_says_in_its_first_words_which_thing_it_is():
    first = {
        path: docstring_of(path).partition(" ")[0].lower().strip(",:")
        for path in PACKAGE.rglob("*.py")
    }

    assert [str(path) for path, word in first.items() if word in {"", *QUESTIONS}] == []


@pytest.mark.parametrize("room", ROOMS, ids=name)
def test_a_room_says_what_comes_in_and_what_goes_out(room):
    assert re.search(r"\bIn: .*\sOut:\s", docstring(room), re.DOTALL)


@pytest.mark.parametrize("room", ROOMS, ids=name)
def test_a_room_has_a_reading_order_of_its_own_members(room):
    order = re.search(r"\bRead\s(?:.+\n?)+", docstring(room))

    assert order is not None
    named = re.findall(r"(?<!`)`(\w+)`(?!`)", order[0])
    assert named
    assert {*named} <= members(room)


@pytest.mark.parametrize(("words", "path"), WHERE_IS.items())
def test_a_newcomer_finds_a_module_by_its_name_or_the_docstring_of_its_room(
    words, path
):
    module = PACKAGE / f"{path}.py"
    about = docstring(module.parent)

    assert module.exists()
    is_told = words in about and f"`{module.stem}`" in about
    assert is_told or words in module.stem.replace("_", " ")
