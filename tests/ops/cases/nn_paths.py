"""Cases of the loss of sequences without an alignment."""

from collections.abc import Iterator
from typing import Any, Final

from tests.ops.cases.case import A, Case, Refused, V
from tests.ops.cases.nn import f, no

#: Six times, two sequences, four classes; PyTorch's gradient is right only for what
#: went into a log_softmax, so it is compared with PyTorch's alone.
LOGS: Final = A((6, 2, 4), -3, -0.1)
ROWS: Final = V(((1, 2, 2), (3, 1, 1)), "i")


def ctc(*args: Any, **options: Any) -> Case:
    return f("ctc_loss", *args, numeric=False, second=False, **options)


def losses() -> Iterator[Case]:
    for reduction in ("none", "sum", "mean"):
        yield ctc(LOGS, ROWS, (6, 5), (3, 2), reduction=reduction)
    yield ctc(LOGS, V((1, 2, 2, 3, 1), "i"), (6, 5), (3, 2))
    yield ctc(LOGS, V(((0, 1), (1, 1)), "i"), (4, 6), (1, 2), blank=3)
    # The second target does not fit: it needs a blank between equal labels.
    for zero in (False, True):
        yield ctc(LOGS, ROWS, (6, 3), (3, 3), reduction="none", zero_infinity=zero)
    yield ctc(LOGS, ROWS, (6, 5), (0, 2), reduction="none")
    yield ctc(LOGS, ROWS, V((6, 5), "i"), V((3, 2), "i"))
    yield ctc(A((5, 3), -3, -0.1), V((1, 2), "i"), (5,), (2,))
    yield ctc(A((4, 1, 3), -3, -0.1), V(((),), "i"), (4,), (0,), reduction="sum")


CASES: Final = tuple(losses())

REFUSED: Final[tuple[Refused, ...]] = (
    no(
        "ctc_loss",
        LOGS,
        ROWS,
        (6, 7),
        (3, 2),
        error=RuntimeError,
        message="Expected input_lengths to have value at most 6, but got value 7",
    ),
    no(
        "ctc_loss",
        LOGS,
        ROWS,
        (6,),
        (3, 2),
        error=RuntimeError,
        message="input_lengths must be of size batch_size",
    ),
    no(
        "ctc_loss",
        LOGS,
        ROWS,
        (6, 5),
        (3,),
        error=RuntimeError,
        message="target_lengths must be of size batch_size",
    ),
    no(
        "ctc_loss",
        LOGS,
        ROWS,
        (6, 5),
        (3, 4),
        error=RuntimeError,
        message="Expected tensor to have size at least 4 at dimension 1",
    ),
    no(
        "ctc_loss",
        LOGS,
        ROWS,
        (6, 5),
        (3, -2),
        error=RuntimeError,
        message="Expected target_lengths to have value at least 0, but got value -2",
    ),
    no(
        "ctc_loss",
        LOGS,
        ROWS,
        (6, 5),
        (3, 2),
        blank=4,
        error=RuntimeError,
        message="blank must be in label range",
    ),
    no(
        "ctc_loss",
        LOGS,
        V((1, 2, 3), "i"),
        (6, 5),
        (3, 2),
        error=RuntimeError,
        message="Expected tensor to have size 5 at dimension 0, but got size 3",
    ),
    no(
        "ctc_loss",
        A((4,)),
        ROWS,
        (6, 5),
        (3, 2),
        error=RuntimeError,
        message="Expected 3-dimensional tensor, but got 2-dimensional tensor",
    ),
)
