"""The page ``docs/ops.md``: run ``python -m tests.ops.cases.page`` to write it."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

import gradviz as gv
import gradviz.linalg
import gradviz.nn.functional
import gradviz.special
from tests.ops.cases import families
from tests.ops.cases.case import BOOL, COMPLEX, FLOATS, INTS, Case
from tests.ops.cases.table import FAMILIES, REFUSED

PAGE = Path(__file__).parents[3] / "docs" / "ops.md"

HEAD = """\
# Ops

What is computed with tensors: written by `python -m tests.ops.cases.page` from the
table of cases in `tests/ops/cases/`. Names, signatures, dtypes, results, nodes of the
graph and error messages are PyTorch's; `gv` is `gradviz`.

Each row says how its op is checked:

- **differences**: gradients against finite differences in float64, and in complex128
  where that is listed: *twice* if gradients of gradients are, too
  (`tests/ops/test_every_op.py`; with more inputs by `make stress`).
- Other dtypes are compared with double precision, and every case runs on a simulated
  device and on arrays with gaps, with the same outcome (in the same file).
- **PyTorch**: how many calls were compared with PyTorch's: values, dtypes, shapes, the
  graph, gradients, and gradients of gradients (`tests/parity/test_every_op.py`).
- **refused**: how many wrong calls raise PyTorch's exception with PyTorch's words.

Of the calls of an op, `make test` takes a sample, and `make stress` all of them.
"""

#: Where a name may stand, and what the page calls that.
PLACES = (
    ("gv.{}", gv, "{}"),
    ("Tensor.{}", gv.Tensor, "{}"),
    ("Tensor.{}_", gv.Tensor, "{}_"),
    ("gv.nn.functional.{}", gradviz.nn.functional, "{}"),
    ("gv.linalg.{}", gradviz.linalg, "{}"),
    ("gv.special.{}", gradviz.special, "{}"),
)

KINDS = ((FLOATS, "float"), (COMPLEX, "complex"), (INTS, "int"), (BOOL, "bool"))


def text() -> str:
    """The whole page."""
    refused = defaultdict(int)
    for one in REFUSED:
        refused[op_of(one.name)] += 1
    parts = [HEAD]
    for title, cases in FAMILIES.items():
        parts.append(
            f"\n## {title}\n\n"
            "| op | where | dtypes | differences | PyTorch | refused |\n"
            "|---|---|---|---|---|---|\n"
        )
        for op, some in grouped(cases):
            parts.append(row(op, some, refused[op]))
    return "".join([*parts, families.section()])


def op_of(name: str) -> str:
    """The op of a name: ``Tensor.sin_`` is about ``sin``."""
    op = name.removeprefix("Tensor.").removeprefix("nn.functional.")
    op = op.removeprefix("special.")
    return op if op.endswith("__") else op.removesuffix("_")


def grouped(cases: Iterable[Case]) -> Iterator[tuple[str, list[Case]]]:
    """The cases of each op, ops in alphabetical order."""
    groups = defaultdict(list)
    for case in cases:
        groups[op_of(case.name)].append(case)
    for op in sorted(groups, key=lambda op: (op.strip("_"), op)):
        yield op, groups[op]


def row(op: str, cases: list[Case], num_refused: int) -> str:
    """One row of a table."""
    dtypes = {dtype for case in cases for dtype in case.dtypes}
    numeric = [case for case in cases if case.numeric and any(case.differentiated())]
    differences = (
        "" if not numeric else "twice" if any(one.second for one in numeric) else "once"
    )
    num_calls = sum(len(case.dtypes) for case in cases if not case.differs)
    notes = sorted({case.differs for case in cases if case.differs})
    compared = "; ".join([*([str(num_calls)] * (num_calls > 0)), *notes])
    return (
        f"| `{op}` | {places(op, cases)} | {summary(dtypes)} | {differences} | "
        f"{compared} | {num_refused or ''} |\n"
    )


def is_there(home: object, name: str) -> bool:
    """Return whether users find an op there; `gradviz.view` is a package."""
    return not isinstance(getattr(home, name, None), ModuleType | None)


def places(op: str, cases: list[Case]) -> str:
    """Return the public places of an op."""
    name = op.rpartition(".")[2]
    found = [
        label.format(name)
        for label, home, attribute in PLACES
        if is_there(home, attribute.format(name))
        and (home is gv.Tensor or not name.startswith("__"))
        and (op == name or label.startswith(f"gv.{op.rpartition('.')[0]}."))
    ]
    found = found or sorted({case.name for case in cases})
    return ", ".join(f"`{one}`" for one in found)


def summary(dtypes: set[str]) -> str:
    """Dtypes by kind: all of a kind, or which."""
    parts = []
    for names, kind in KINDS:
        present = [name for name in reversed(names) if name in dtypes]
        if len(present) == len(names):
            parts.append(kind)
        elif present and kind == "int":
            parts.append("int")
        else:
            parts += present
    return ", ".join(parts)


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
