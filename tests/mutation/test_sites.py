import ast
from pathlib import Path

import pytest

from tests.mutation.sites import changed, sites

SOURCE = '''
def f(x: int = 1, *, all: bool = True) -> bool:
    """A text."""
    if x < 3 and all:
        x += 2
        print(x)
    while x:
        break
    with lock:
        x.y = 5
    return x is not None
'''


def after(what):
    (site,) = (one for one in sites(SOURCE) if one.what == what)
    return changed(SOURCE, site)


@pytest.mark.parametrize(
    ("what", "line"),
    [
        ("Lt -> LtE", "if x <= 3 and all:"),
        ("And -> Or", "if x < 3 or all:"),
        ("Add -> Sub", "x -= 2"),
        ("no break", "pass"),
        ("no expr", "pass"),
        ("no assign", "pass"),
        ("no with", "\n    x.y = 5"),
        ("IsNot -> Is", "return x is None"),
        ("return None", "return None"),
        ("not True", "def f(x: int=1, *, all: bool=False) -> bool:"),
        ("3 + 1", "if x < 4 and all:"),
    ],
)
def test_a_change_is_made_where_it_is_said(what, line):
    assert line in after(what)


def test_texts_are_left_alone():
    changes = [changed(SOURCE, site) for site in sites(SOURCE)]

    assert all("A text." in one for one in changes)
    assert len(changes) == len(set(changes))


def test_every_change_is_python_and_another_program():
    source = (
        Path(__file__).parents[2] / "gradviz/engine/tasks/ready_queue.py"
    ).read_text()
    plain = ast.unparse(ast.parse(source))

    found = sites(source)

    assert len(found) > 20
    for site in found:
        text = changed(source, site)
        compile(text, "ready_queue.py", "exec")
        assert text != plain
