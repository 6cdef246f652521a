"""Public names of ops: said once, at the end of the module that defines one.

``PUBLIC = [*names("gv.f x.f", asin, arcsin=asin)]`` there makes ``gv.asin`` and
``x.asin``, ``gv.arcsin`` and ``x.arcsin``. `gradviz.ops.table` gathers them all.
"""

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from gradviz.ops.dispatch.calling import numpy_names
from gradviz.ops.dispatch.differentiable import Op
from gradviz.ops.dispatch.in_place import in_place
from gradviz.ops.dispatch.out import takes_out


class Home(Enum):
    """A place for public names of ops, as `names` calls it."""

    GRADVIZ = "gv"
    TENSOR = "x"
    FUNCTIONAL = "F"
    LINALG = "linalg"
    SPECIAL = "special"
    UFUNCS = "np"  #: NumPy's, where tensors are among the arguments
    ARRAY_FUNCTIONS = "np.f(axis=)"  #: what NumPy has besides ufuncs


class PublicName(NamedTuple):
    """One name in one place."""

    home: Home
    name: str
    op: Op


def names(forms: str, *ops: Op, **renamed: Op) -> Iterator[PublicName]:
    """The names of ops, in the forms that users write.

    Args:
        forms: Those of an op called ``f``, after its homes: ``gv.f``, ``gv.f(out=)``,
            which may be called without ``out`` too, ``x.f_``, which is in place,
            ``np.f`` for a ufunc and ``np.f(axis=)`` for another function of NumPy's.
        *ops: They have their own names.
        **renamed: They have these.

    Raises:
        ValueError: There is no such form.
    """
    for form in forms.split():
        place, _, ending = form.partition(".f")
        home = Home(place)
        for name, op in [*((op.__name__, op) for op in ops), *renamed.items()]:
            match ending:
                case "":
                    yield PublicName(home, name, op)
                case "_":
                    yield PublicName(home, f"{name}_", in_place(op))
                case "(out=)":
                    word = name if home is Home.GRADVIZ else f"{place}_{name}"
                    yield PublicName(home, name, takes_out(op, word))
                case "(axis=)":
                    yield PublicName(Home.ARRAY_FUNCTIONS, name, numpy_names(op))
                case _:
                    raise ValueError(
                        f"names(): expected forms such as 'gv.f', 'gv.f(out=)', "
                        f"'x.f_' and 'np.f(axis=)', got {form!r} for {name}"
                    )
