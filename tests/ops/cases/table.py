"""All cases, by family. A family has a module here: ``CASES``, and ``REFUSED``."""

from typing import Final

from tests.ops.cases import (
    activations,
    elementwise,
    elementwise_refused,
    indexing,
    linalg,
    nn,
    nn_lookups,
    nn_paths,
    reductions,
    shapes,
    special,
)
from tests.ops.cases.case import Case, Refused

#: Title of each family on the page ``docs/ops.md``, and its cases.
FAMILIES: Final[dict[str, tuple[Case, ...]]] = {
    "Elementwise": (*elementwise.CASES, *special.CASES),
    "Activations": activations.CASES,
    "Reductions, orders and running sums": reductions.CASES,
    "Shapes": shapes.CASES,
    "Indexing": indexing.CASES,
    "Linear algebra": linalg.CASES,
    "Layers and losses": (*nn.CASES, *nn_lookups.CASES, *nn_paths.CASES),
}

CASES: Final[tuple[Case, ...]] = tuple(
    case for family in FAMILIES.values() for case in family
)

REFUSED: Final[tuple[Refused, ...]] = (
    *elementwise_refused.REFUSED,
    *reductions.REFUSED,
    *shapes.REFUSED,
    *indexing.REFUSED,
    *linalg.REFUSED,
    *nn.REFUSED,
    *nn_lookups.REFUSED,
    *nn_paths.REFUSED,
    *special.REFUSED,
)
