"""Cases of layers that look something up: bags of embeddings, places in images."""

from collections.abc import Iterator
from typing import Final

from tests.ops.cases.case import FLOATS, A, Case, Refused, V
from tests.ops.cases.nn import f, no

TABLE: Final = A((5, 3))
ENTRIES: Final = V((0, 2, 2, 4, 1, 1, 3), "i")
#: The second bag is empty.
STARTS: Final = V((0, 3, 3), "i")


def bags() -> Iterator[Case]:
    for mode in ("sum", "mean", "max"):
        table = A((5, 3), spaced=True)
        # PyTorch has no derivative of the gradient.
        yield f(
            "embedding_bag",
            ENTRIES,
            table,
            STARTS,
            mode=mode,
            second=False,
            graph=mode != "max",
        )
        yield f(
            "embedding_bag",
            ENTRIES,
            table,
            STARTS,
            mode=mode,
            padding_idx=2,
            second=False,
            graph=mode != "max",
        )
        yield f(
            "embedding_bag",
            V(((0, 2), (4, 4)), "i"),
            table,
            mode=mode,
            second=False,
            graph=mode != "max",
            dtypes=FLOATS,
        )
    yield f(
        "embedding_bag",
        ENTRIES,
        TABLE,
        V((0, 3, 7), "i"),
        include_last_offset=True,
        second=False,
    )
    for entries, weights in (
        (ENTRIES, A((7,))),
        (V(((0, 2), (4, 4)), "i"), A((2, 2))),
    ):
        yield f(
            "embedding_bag",
            entries,
            TABLE,
            None if weights.shape == (2, 2) else STARTS,
            mode="sum",
            per_sample_weights=weights,
            second=False,
            graph=False,
        )
    yield f(
        "embedding_bag",
        ENTRIES,
        TABLE,
        STARTS,
        mode="sum",
        per_sample_weights=A((7,)),
        padding_idx=-3,
        second=False,
        graph=False,
    )
    yield f(
        "embedding_bag",
        ENTRIES,
        TABLE,
        STARTS,
        scale_grad_by_freq=True,
        numeric=False,
        second=False,
        differs="PyTorch divides by the wrong row's frequency",
    )


def grids() -> Iterator[Case]:
    for mode in ("bilinear", "nearest", "bicubic"):
        for padding in ("zeros", "border", "reflection"):
            for align in (False, True):
                yield f(
                    "grid_sample",
                    A((2, 2, 3, 4)),
                    A((2, 3, 2, 2), -1.9, 1.9),
                    mode=mode,
                    padding_mode=padding,
                    align_corners=align,
                    second=mode != "nearest",
                )
    for mode in ("bilinear", "nearest"):
        yield f(
            "grid_sample",
            A((1, 2, 3, 2, 4)),
            A((1, 2, 2, 2, 3), -1.3, 1.3),
            mode=mode,
            align_corners=False,
            second=mode != "nearest",
        )
    image, places = A((1, 1, 2, 2)), V(((((-1.0, 1.0), (0.0, 9.0)),),))
    yield f("grid_sample", image, places, align_corners=True, numeric=False)
    yield f("grid_sample", A((0, 1, 2, 2)), A((0, 1, 2, 2)), align_corners=False)
    for align in (False, True):
        yield f("affine_grid", A((2, 2, 3)), (2, 1, 3, 4), align_corners=align)
        yield f("affine_grid", A((1, 3, 4)), (1, 2, 2, 3, 1), align_corners=align)


CASES: Final = (*bags(), *grids())

REFUSED: Final[tuple[Refused, ...]] = (
    no(
        "embedding_bag",
        ENTRIES,
        TABLE,
        error=ValueError,
        message="offsets has to be a 1D Tensor but got None",
    ),
    no(
        "embedding_bag",
        V((((1,),),), "i"),
        TABLE,
        error=ValueError,
        message="input has to be 1D or 2D Tensor, but got Tensor of dimension 3",
    ),
    no(
        "embedding_bag",
        ENTRIES,
        TABLE,
        STARTS,
        mode="prod",
        error=ValueError,
        message="mode has to be one of sum, mean or max",
    ),
    no(
        "embedding_bag",
        ENTRIES,
        TABLE,
        STARTS,
        mode="max",
        scale_grad_by_freq=True,
        error=ValueError,
        message="max mode does not support scaling the gradient by the frequency",
    ),
    no(
        "embedding_bag",
        ENTRIES,
        TABLE,
        STARTS,
        per_sample_weights=A((7,)),
        error=NotImplementedError,
        message="per_sample_weights is only supported for mode='sum' (got mode='mean')",
    ),
    no(
        "embedding_bag",
        ENTRIES,
        TABLE,
        STARTS,
        mode="sum",
        per_sample_weights=A((3,)),
        error=ValueError,
        message="If per_sample_weights (torch.Size([3])) is not None",
    ),
    Refused(
        "nn.functional.embedding_bag",
        (ENTRIES, A((2, 3)), STARTS),
        RuntimeError,
        "Expected idx >= 0 && idx < num_embeddings but found idx to be 2",
        dtype="float64",
    ),
    no(
        "embedding_bag",
        A((3,)),
        TABLE,
        STARTS,
        error=RuntimeError,
        message="but got torch.FloatTensor instead",
    ),
    no(
        "embedding_bag",
        ENTRIES,
        TABLE,
        STARTS,
        padding_idx=7,
        error=RuntimeError,
        message="padding_idx must be within the number of embeddings, -5 through 4",
    ),
    no(
        "embedding_bag",
        ENTRIES,
        TABLE,
        V((0, 9), "i"),
        error=RuntimeError,
        message="offsets[-1] can not be greater than input's length 7",
    ),
    no(
        "grid_sample",
        A((1, 1, 2, 2)),
        A((1, 1, 2, 2)),
        mode="cubic",
        error=ValueError,
        message="expected mode to be 'bilinear', 'nearest' or 'bicubic'",
    ),
    no(
        "grid_sample",
        A((1, 1, 2, 2)),
        A((1, 1, 2, 2)),
        padding_mode="ones",
        error=ValueError,
        message="expected padding_mode to be 'zeros', 'border', or 'reflection'",
    ),
    no(
        "grid_sample",
        A((2, 1, 2, 2)),
        A((1, 1, 2, 2)),
        align_corners=False,
        error=RuntimeError,
        message="expected grid and input to have same batch size",
    ),
    no(
        "grid_sample",
        A((1, 1, 2, 2)),
        A((1, 1, 2, 3)),
        align_corners=False,
        error=RuntimeError,
        message="expected grid to have size 2 in last dimension",
    ),
    no(
        "grid_sample",
        A((1, 1, 0, 2)),
        A((1, 1, 2, 2)),
        align_corners=False,
        error=RuntimeError,
        message="expected input to have non-empty spatial dimensions",
    ),
    no(
        "grid_sample",
        A((1, 1, 2, 2, 2)),
        A((1, 1, 2, 2, 3)),
        mode="bicubic",
        align_corners=False,
        error=RuntimeError,
        message="bicubic interpolation only supports 4D input",
    ),
    no(
        "affine_grid",
        A((2, 2, 3)),
        (2, 1, 3),
        align_corners=False,
        error=NotImplementedError,
        message="affine_grid only supports 4D and 5D sizes",
    ),
    no(
        "affine_grid",
        A((2, 2, 3)),
        (2, 1, 3, 4, 5),
        align_corners=False,
        error=ValueError,
        message="Expected a batch of 3D affine matrices of shape Nx3x4",
    ),
    no(
        "affine_grid",
        A((2, 2, 3)),
        (2, 1, 0, 4),
        align_corners=False,
        error=ValueError,
        message="Expected non-zero, positive output size",
    ),
)
