"""User code as type checkers see it.

That the stubs are those of the sources is for `make lint` to say.
"""

import subprocess
import sys
from pathlib import Path

from tests.ops.cases.case import A, Dtype, V
from tests.ops.cases.table import CASES

HERE = Path(__file__).parent


def mypy(page):
    """Return mypy's messages about a page of user code."""
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(page)],
        cwd=HERE.parents[1],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert checked.stdout, checked.stderr
    return checked.stdout


def test_right_code_has_the_types_that_a_user_expects():
    assert mypy(HERE / "right_code.py").startswith("Success")


def test_each_mistake_is_found():
    assert mypy(HERE / "wrong_code.py").startswith("Success")


def test_a_mistake_that_is_none_any_more_is_told(tmp_path):
    page = tmp_path / "page.py"
    page.write_text("import gradviz as gv\ngv.exp(gv.ones(2))  # type: ignore\n")
    assert "unused-ignore" in mypy(page)


def source(value):
    """An argument of a case as a user writes it, all of whose tensors are `x`."""
    match value:
        case A() | V():
            return "x"
        case Dtype():
            return f"gv.{value.name}"
        case list():
            return f"[{', '.join(map(source, value))}]"
        case tuple():
            return f"({''.join(f'{source(one)}, ' for one in value)})"
        case float():
            return f"float('{value}')"
        case _ if value is Ellipsis:
            return "..."
        case _:
            return repr(value)


def call(case):
    """The call of a case as a user writes it."""
    named = [f"{name}={source(value)}" for name, value in case.kwargs.items()]
    return f"gv.{case.name}({', '.join([*map(source, case.args), *named])})"


def test_each_call_that_is_tried_of_an_op_is_right(tmp_path):
    page = tmp_path / "page.py"
    lines = ["import gradviz as gv", "x = gv.ones(2)", *sorted({*map(call, CASES)})]
    page.write_text("\n".join(lines) + "\n")

    assert mypy(page).startswith("Success")
