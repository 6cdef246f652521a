"""The ops that wait for a device, and why: the table in ``docs/streams.md``.

Run ``python -m tests.ops.cases.waits`` to write it. Whatever is not listed launches,
forward and backward: `tests/ops/test_every_op.py` looks at every case.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

PAGE: Final = Path(__file__).parents[3] / "docs" / "streams.md"

BEGIN: Final = "<!-- The table is written by python -m tests.ops.cases.waits -->\n\n"
END: Final = "\n<!-- The end of that table -->\n"


@dataclass(frozen=True)
class Wait:
    """Ops that wait for the same reason.

    Attributes:
        reason: Why.
        in_pytorch: Whether PyTorch waits there too, on CUDA.
        forward: Ops whose forward waits, as `page.op_of` names them.
        backward: Ops whose backward does.
    """

    reason: str
    in_pytorch: str
    forward: tuple[str, ...]
    backward: tuple[str, ...] = ()


WAITS: Final = (
    Wait(
        "Elements decide the shape of the result",
        "waits as well",
        (
            *("argwhere", "bincount", "combinations", "index_put", "masked_select"),
            *("nonzero", "one_hot", "repeat_interleave", "unique"),
            *("unique_consecutive", "where", "__getitem__"),
        ),
        (
            *("combinations", "index_fill", "index_put", "masked_scatter"),
            *("masked_select", "__getitem__"),
        ),
    ),
    Wait(
        "The result is a number, or a choice, of the program's",
        "waits as well",
        ("allclose", "corrcoef", "cov", "equal", "histc"),
        (),
    ),
    Wait(
        "Elements may be refused by an exception that programs catch",
        "waits as well, but for `cholesky_inverse` and in backwards",
        (
            *("cholesky", "cholesky_inverse", "inverse", "gaussian_nll_loss"),
            *("linalg.cholesky", "linalg.cond", "linalg.eigh", "linalg.eigvals"),
            *("linalg.eigvalsh", "linalg.inv", "linalg.lstsq"),
            *("linalg.matrix_norm", "linalg.matrix_power", "linalg.matrix_rank"),
            *("linalg.pinv", "linalg.solve", "linalg.svd", "linalg.svdvals"),
            "linalg.tensorsolve",
        ),
        ("linalg.eigvals", "linalg.lstsq"),
    ),
    Wait(
        "Elements decide how it is computed: whether a factor is 0, how large they are",
        "waits as well",
        ("linalg.matrix_exp",),
        (
            *("cumprod", "index_reduce", "linalg.matrix_exp", "linalg.vander"),
            *("prod", "scatter_reduce"),
        ),
    ),
    Wait(
        "A part is done by the host",
        "waits in `ctc_loss`, for lengths that are on the device",
        ("ctc_loss",),
        ("ctc_loss",),
    ),
)

FORWARD: Final = frozenset(op for wait in WAITS for op in wait.forward)
BACKWARD: Final = frozenset(op for wait in WAITS for op in wait.backward)


def table() -> str:
    """The table of the page."""
    lines = ["| why | forward | backward | PyTorch |", "|---|---|---|---|"]
    for wait in WAITS:
        forward, backward = (
            ", ".join(f"`{op}`" for op in ops) for ops in (wait.forward, wait.backward)
        )
        lines.append(f"| {wait.reason} | {forward} | {backward} | {wait.in_pytorch} |")
    return "\n".join(lines) + "\n"


def written(page: str) -> str:
    """The page with the table as it has to be."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}{table()}{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
