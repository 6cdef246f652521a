"""Cases of layers and losses: ``nn.functional``."""

from collections.abc import Iterator
from math import inf
from typing import Any, Final

from tests.ops.cases.case import DOUBLE, FLOATS, A, Case, Refused, V


def f(name: str, *args: Any, dtypes: tuple[str, ...] = DOUBLE, **options: Any) -> Case:
    """A case of ``nn.functional``; options that are not `Case`'s go to the function."""
    own = {"numeric", "second", "graph", "rtol", "differs"}
    return Case(
        f"nn.functional.{name}",
        args,
        {key: value for key, value in options.items() if key not in own},
        dtypes=dtypes,
        **{key: value for key, value in options.items() if key in own},
    )


def no(
    name: str, *args: Any, error: type[Exception], message: str, **kwargs: Any
) -> Refused:
    """A refusal of ``nn.functional``."""
    return Refused(f"nn.functional.{name}", args, error, message, kwargs)


# --- products -----------------------------------------------------------------------

LINEAR: Final = (
    f("linear", A((2, 3)), A((4, 3)), A((4,)), dtypes=FLOATS),
    f("linear", A((2, 3)), A((4, 3))),
    f("linear", A((3,)), A((4, 3)), A((4,))),
    f("linear", A((3,)), A((4, 3))),
    f("linear", A((2, 2, 3)), A((4, 3)), A((4,))),
    f("linear", A((2, 2, 3)), A((4, 3))),
    f("linear", A((2, 3)), A((3,))),
    f("linear", A((0, 3)), A((4, 3)), A((4,))),
    f("bilinear", A((2, 3)), A((2, 2)), A((4, 3, 2)), A((4,))),
    f("bilinear", A((3,)), A((2,)), A((4, 3, 2))),
    f("embedding", V(((0, 2), (2, 1)), "i"), A((4, 3)), dtypes=FLOATS),
    f("embedding", V(((0, 2), (2, 1)), "i"), A((4, 3)), padding_idx=2, numeric=False),
    f(
        "embedding",
        V((0, 2, 2), "i"),
        A((4, 3)),
        scale_grad_by_freq=True,
        numeric=False,
    ),
    f("embedding", V((), "i"), A((4, 3))),
)

# --- convolutions -------------------------------------------------------------------


def convolutions() -> Iterator[Case]:
    for spatial, settings in (
        (1, ({}, {"stride": 2, "padding": 1}, {"dilation": 2}, {"padding": "same"})),
        (
            2,
            (
                {},
                {"stride": (2, 1), "padding": (0, 2)},
                {"dilation": (2, 1)},
                {"padding": "same"},
                {"padding": "valid"},
            ),
        ),
        (3, ({}, {"stride": 2, "padding": 1})),
    ):
        lengths, kernel = (5, 6, 4)[:spatial], (3, 2, 2)[:spatial]
        x, w = A((2, 2, *lengths)), A((3, 2, *kernel))
        for options in settings:
            yield f(f"conv{spatial}d", x, w, A((3,)), **options)
        yield f(f"conv{spatial}d", A((2, *lengths)), w)
        grouped = A((4, 1, *kernel))
        yield f(f"conv{spatial}d", x, grouped, A((4,)), groups=2)
        transposed = A((2, 3, *kernel))
        name = f"conv_transpose{spatial}d"
        yield f(name, x, transposed, A((3,)))
        yield f(name, x, transposed, stride=2, padding=1, output_padding=1)
    image, weight = A((1, 2, 4, 4)), A((2, 2, 3, 3))
    yield f("conv2d", image, weight, dtypes=("float16",), second=False)
    yield f("conv2d", A((0, 2, 4, 4)), weight)
    yield f("conv2d", image, A((3, 2, 1, 1)), A((3,)))
    yield f("conv_transpose2d", A((1, 4, 3, 3)), A((4, 1, 2, 2)), groups=2, dilation=2)


def pools() -> Iterator[Case]:
    x = A((2, 2, 5, 6), spaced=True)
    for options in (
        {},
        {"stride": 1},
        {"padding": 1},
        {"ceil_mode": True},
        {"stride": (2, 1), "padding": (1, 0), "ceil_mode": True},
    ):
        yield f("max_pool2d", x, 2, **options)
        yield f("avg_pool2d", x, 2, **options)
    yield f("max_pool2d", x, (2, 3), dilation=(2, 1), return_indices=True)
    yield f("max_pool2d", A((2, 4, 4), spaced=True), 2, dtypes=FLOATS)
    yield f("max_pool2d", V((((float("nan"), 1.0), (2.0, 3.0)),)), 2, numeric=False)
    yield f("avg_pool2d", x, 3, padding=1, count_include_pad=False)
    yield f("avg_pool2d", x, 2, divisor_override=3)
    yield f("avg_pool2d", A((2, 4, 4)), 2, dtypes=FLOATS)
    for spatial in (1, 3):
        volume = A((2, *(4, 4, 5)[:spatial]), spaced=True)
        yield f(f"max_pool{spatial}d", volume, 2, padding=1)
        yield f(f"max_pool{spatial}d", volume, 2, return_indices=True)
        yield f(f"avg_pool{spatial}d", volume, 2, padding=1)
    for spatial in (1, 2, 3):
        volume = A((2, 2, *(5, 6, 4)[:spatial]), spaced=True)
        for outputs in (1, 2, 3):
            yield f(f"adaptive_avg_pool{spatial}d", volume, outputs)
            yield f(f"adaptive_max_pool{spatial}d", volume, outputs)
    yield f("adaptive_avg_pool2d", x, (None, 3))
    yield f("adaptive_max_pool2d", x, (3, 4), return_indices=True)
    yield f("lp_pool1d", A((2, 6), 0.5, 2), 2, 2)
    yield f("lp_pool2d", A((2, 4, 4), 0.5, 2), 3, 2, stride=1)
    places = V((((0, 3), (6, 13)),), "i")
    yield f("max_unpool2d", A((1, 2, 2)), places, 2)
    yield f("max_unpool1d", A((1, 2)), V(((1, 2),), "i"), 2)
    yield f("unfold", x, (2, 3), dilation=1, padding=1, stride=2)
    yield f("unfold", A((2, 4, 4)), 2)
    yield f("fold", A((2, 8, 6)), (3, 4), 2)
    yield f("fold", A((8, 4)), (3, 3), 2, padding=1, stride=2)


def resizes() -> Iterator[Case]:
    for mode, shape in (
        ("nearest", (2, 2, 3)),
        ("nearest", (1, 2, 3, 4)),
        ("nearest-exact", (1, 2, 3, 4)),
        ("area", (1, 2, 3, 4)),
        ("linear", (2, 2, 3)),
        ("bilinear", (1, 2, 3, 4)),
        ("bicubic", (1, 2, 3, 4)),
        ("trilinear", (1, 1, 2, 3, 2)),
    ):
        yield f("interpolate", A(shape), scale_factor=2, mode=mode)
        yield f("interpolate", A(shape), size=5, mode=mode)
        if mode.endswith(("linear", "cubic")):
            yield f("interpolate", A(shape), None, 1.7, mode, True)
            yield f("interpolate", A(shape), None, 0.6, mode, False)
    yield f("pixel_shuffle", A((1, 8, 2, 3)), 2)
    yield f("pixel_unshuffle", A((1, 2, 4, 6)), 2)
    yield f("channel_shuffle", A((1, 6, 2, 2)), 3)


# --- normalization, dropout, attention ----------------------------------------------

STATISTICS: Final = (A((3,), kind="d"), A((3,), 0.5, 2, kind="d"))

NORMALIZATION: Final = (
    f("layer_norm", A((2, 3, 4)), (4,), A((4,)), A((4,)), dtypes=FLOATS),
    f("layer_norm", A((2, 3, 4)), (3, 4), A((3, 4)), A((3, 4))),
    f("layer_norm", A((2, 3)), (3,)),
    f("layer_norm", A((3,)), (3,), A((3,))),
    f("rms_norm", A((2, 3)), (3,), A((3,)), dtypes=FLOATS),
    f("rms_norm", A((2, 3)), (3,), eps=0.1),
    f("batch_norm", A((4, 3, 2)), None, None, A((3,)), A((3,)), training=True),
    f("batch_norm", A((4, 3)), None, None, training=True),
    f("batch_norm", A((2, 3, 2, 2)), *STATISTICS, A((3,)), A((3,))),
    f("batch_norm", A((2, 3, 2, 2)), *STATISTICS),
    f("batch_norm", A((2, 3, 2)), *STATISTICS, A((3,)), None, True, 0.3, 0.1),
    f("group_norm", A((2, 4, 3)), 2, A((4,)), A((4,))),
    f("group_norm", A((2, 4, 2, 2)), 4),
    f("instance_norm", A((2, 3, 4)), None, None, A((3,)), A((3,))),
    f("instance_norm", A((2, 3, 4)), *STATISTICS, use_input_stats=False),
    f("local_response_norm", A((2, 4, 3)), 2),
    f("local_response_norm", A((2, 4, 3, 2)), 3, 0.1, 0.5, 2.0),
    f("normalize", A((2, 3))),
    f("normalize", A((2, 3)), p=3.0, dim=0),
    f("cosine_similarity", A((2, 3)), A((2, 3))),
    f("cosine_similarity", A((2, 3)), A((1, 3)), dim=0),
    f("pairwise_distance", A((2, 3)), A((2, 3), 3, 5)),
    *(f("pdist", A((4, 3), spaced=True), p, second=False) for p in (0, 1, 1.5, 2, 3.0)),
    f("pdist", A((4, 3)), inf, second=False),
    f("pdist", A((4, 3), spaced=True), inf, numeric=False, second=False),  # ties
    f("pdist", A((1, 3)), second=False),
    f("pairwise_distance", A((2, 3)), A((3,), 3, 5), p=1.0, keepdim=True),
    f("dropout", A((2, 3)), 0.5, training=False),
    f("dropout", A((2, 3)), 0.0),
    f("dropout", A((2, 3)), 1.0),
    f("alpha_dropout", A((2, 3)), 0.5, training=False),
    f("dropout2d", A((2, 3, 2, 2)), 1.0),
    f("dropout1d", A((2, 3)), 1.0, graph=False),
)

QUERY, KEY, VALUE = A((1, 2, 3, 4)), A((1, 2, 5, 4)), A((1, 2, 5, 4))
#: PyTorch cannot differentiate the gradients of its flash attention.
ONCE: Final = {"second": False}

ATTENTION: Final = (
    f("scaled_dot_product_attention", QUERY, KEY, VALUE, **ONCE),
    f("scaled_dot_product_attention", QUERY, KEY, VALUE, is_causal=True, **ONCE),
    f("scaled_dot_product_attention", QUERY, KEY, VALUE, scale=0.3, **ONCE),
    f(
        "scaled_dot_product_attention",
        QUERY,
        KEY,
        VALUE,
        V(((True, False, True, True, False),) * 3, "b"),
        **ONCE,
    ),
    f("scaled_dot_product_attention", QUERY, KEY, VALUE, A((3, 5), kind="d"), **ONCE),
    f("scaled_dot_product_attention", QUERY, KEY, VALUE, A((3, 5))),
    f("scaled_dot_product_attention", A((2, 3, 4)), A((2, 5, 4)), A((2, 5, 3))),
    f("scaled_dot_product_attention", A((3, 4)), A((3, 4)), A((3, 4)), is_causal=True),
    f(
        "scaled_dot_product_attention",
        A((3, 4)),
        A((5, 4)),
        A((5, 4)),
        V(((False,) * 5, (True,) * 5, (True, False, True, False, False)), "b"),
    ),
    f(
        "scaled_dot_product_attention",
        A((1, 4, 3, 2)),
        A((1, 2, 5, 2)),
        A((1, 2, 5, 2)),
        enable_gqa=True,
        graph=False,
        **ONCE,
    ),
)

# --- losses -------------------------------------------------------------------------

REDUCTIONS: Final = ("mean", "sum", "none")
X, Y = A((2, 3)), A((2, 3), -3, 3)
CLASSES: Final = V((2, 0), "i")
SIGNS: Final = V(((1.0, -1.0, 1.0), (-1.0, -1.0, 1.0)), "d")
SHARE: Final = A((2, 3), 0.1, 0.9)
SOFT: Final = V(((0.2, 0.5, 0.3), (0.7, 0.1, 0.2)), "d")


def losses() -> Iterator[Case]:
    for reduction in REDUCTIONS:
        r = {"reduction": reduction}
        yield f("mse_loss", X, Y, **r)
        yield f("l1_loss", X, Y, **r)
        yield f("smooth_l1_loss", X, Y, **r, beta=0.7)
        yield f("huber_loss", X, Y, **r, delta=0.7)
        yield f("soft_margin_loss", X, SIGNS, **r)
        if reduction != "mean":  # of which it warns
            yield f("kl_div", X, SHARE, **r)
            yield f("kl_div", X, Y, **r, log_target=True)
        yield f("poisson_nll_loss", X, A((2, 3), 0, 4, kind="d"), **r)
        yield f("gaussian_nll_loss", X, Y, A((2, 3), 0.5, 2), **r)
        yield f("nll_loss", X, CLASSES, **r)
        yield f("cross_entropy", X, CLASSES, **r)
        yield f("cross_entropy", X, CLASSES, A((3,), 0.5, 2, kind="d"), **r)
        yield f("cross_entropy", X, CLASSES, **r, label_smoothing=0.2)
        # No target counts: no mean, but gradients are 0.
        yield f("cross_entropy", X, V((1, 1), "i"), **r, ignore_index=1, numeric=False)
        yield f("cross_entropy", X, SOFT, **r)
        yield f("binary_cross_entropy", SHARE, A((2, 3), 0.1, 0.9), **r)
        yield f("binary_cross_entropy_with_logits", X, SHARE, **r)
        yield f("hinge_embedding_loss", X, SIGNS, **r)
        yield f("margin_ranking_loss", X, Y, SIGNS, **r, margin=0.3)
        pair = V((1.0, -1.0), "d")
        yield f("cosine_embedding_loss", X, Y, pair, **r)
        yield f("triplet_margin_loss", X, Y, A((2, 3), 3, 5), **r)
        yield f("multi_margin_loss", X, CLASSES, **r, second=False)
        labels = V(((0, 2, -1), (1, -1, 0)), "i")
        yield f("multilabel_margin_loss", X, labels, **r, second=False)
        yield f("multilabel_soft_margin_loss", X, V(((1, 0, 1), (0, 0, 1)), "d"), **r)
    yield f("mse_loss", A(()), A(()), dtypes=FLOATS)
    yield f("mse_loss", A((0, 3)), A((0, 3)), reduction="sum")
    yield f("smooth_l1_loss", X, Y, beta=0.0)
    yield f("kl_div", X, SOFT, reduction="batchmean")
    yield f("poisson_nll_loss", A((3,), 1, 2), V((0, 1, 3), "d"), False, True)
    yield f("gaussian_nll_loss", X, Y, A((2, 1), 0.5, 2), True)


def class_losses() -> Iterator[Case]:
    image, spatial = A((2, 3, 2, 2)), V((((0, 1), (2, 0)), ((1, 1), (0, 2))), "i")
    ignoring = V((-100, 1), "i")
    weights = A((3,), 0.5, 2, kind="d")
    yield f("nll_loss", A((3,)), V(1, "i"))
    yield f("nll_loss", X, ignoring)
    yield f("nll_loss", X, CLASSES, weights, ignore_index=2)
    yield f("nll_loss", X, CLASSES, weights, reduction="none")
    yield f("nll_loss", image, spatial, weights)
    yield f("nll_loss", A((2, 3, 2)), V(((0, 1), (2, 0)), "i"), reduction="none")
    yield f("cross_entropy", image, spatial)
    yield f("cross_entropy", X, ignoring, weights, label_smoothing=0.1)
    yield f("cross_entropy", X, CLASSES, dtypes=FLOATS)
    yield f("cross_entropy", A((3,)), V(2, "i"))
    yield f("cross_entropy", X, SOFT, weights, label_smoothing=0.3)
    yield f("cross_entropy", A((2, 3, 2)), A((2, 3, 2), 0, 1))
    yield f("binary_cross_entropy", SHARE, SOFT, A((3,), 0.5, 2, kind="d"))
    certain = V((0.0, 1.0)), V((1.0, 1.0), "d")
    yield f("binary_cross_entropy", *certain, numeric=False, second=False, rtol=1e-8)
    yield f("binary_cross_entropy_with_logits", X, SHARE, pos_weight=weights)
    yield f("binary_cross_entropy_with_logits", X, SHARE, weights)
    yield f("binary_cross_entropy_with_logits", V((-100.0, 100.0)), V((0.0, 1.0), "d"))
    yield f("triplet_margin_loss", X, Y, A((2, 3), 3, 5), swap=True, p=1.0)
    yield f("multi_margin_loss", X, CLASSES, p=2, margin=0.5, second=False)


CASES: Final = (
    *LINEAR,
    *convolutions(),
    *pools(),
    *resizes(),
    *NORMALIZATION,
    *ATTENTION,
    *losses(),
    *class_losses(),
)

IMAGE, WEIGHT = A((2, 3, 5, 5)), A((4, 3, 3, 3))

REFUSED: Final = (
    no(
        "linear",
        A((2, 3)),
        A((4, 5)),
        error=RuntimeError,
        message="mat1 and mat2 shapes cannot be multiplied (2x3 and 5x4)",
    ),
    no(
        "linear",
        A((2, 3)),
        None,
        error=TypeError,
        message="argument 'weight' (position 2) must be Tensor, not NoneType",
    ),
    no(
        "conv2d",
        A((2, 4, 5, 5)),
        WEIGHT,
        error=RuntimeError,
        message="Given groups=1, weight of size [4, 3, 3, 3], expected "
        "input[2, 4, 5, 5] to have 3 channels, but got 4 channels instead",
    ),
    no(
        "conv2d",
        A((5, 5)),
        WEIGHT,
        error=RuntimeError,
        message="Expected 3D (unbatched) or 4D (batched) input to conv2d",
    ),
    no(
        "conv2d",
        A((2, 3, 2, 2)),
        WEIGHT,
        error=RuntimeError,
        message="Kernel size can't be greater than actual input size",
    ),
    no(
        "conv2d",
        IMAGE,
        WEIGHT,
        A((5,)),
        error=RuntimeError,
        message="expected bias to be 1-dimensional with 4 elements",
    ),
    no(
        "conv2d",
        IMAGE,
        WEIGHT,
        stride=0,
        error=RuntimeError,
        message="non-positive stride is not supported",
    ),
    no(
        "conv2d",
        IMAGE,
        WEIGHT,
        stride=2,
        padding="same",
        error=RuntimeError,
        message="padding='same' is not supported for strided convolutions",
    ),
    no(
        "conv_transpose2d",
        IMAGE,
        A((3, 4, 3, 3)),
        output_padding=1,
        error=RuntimeError,
        message="output padding must be smaller than either stride or dilation",
    ),
    no("max_pool2d", IMAGE, 0, error=RuntimeError, message="stride should not be zero"),
    no(
        "max_pool2d",
        IMAGE,
        2,
        padding=2,
        error=RuntimeError,
        message="pad should be at most half of effective kernel size",
    ),
    no(
        "avg_pool2d",
        A((2, 3, 1, 1)),
        2,
        error=RuntimeError,
        message="Output size is too small",
    ),
    no(
        "adaptive_avg_pool2d",
        IMAGE,
        -1,
        error=RuntimeError,
        message="must be greater than or equal to 0 but received {-1, -1}",
    ),
    no(
        "embedding",
        V((5,), "i"),
        A((3, 4)),
        error=IndexError,
        message="index out of range in self",
    ),
    no(
        "embedding",
        A((2,)),
        A((3, 4)),
        error=RuntimeError,
        message="to have one of the following scalar types: Long, Int",
    ),
    no(
        "layer_norm",
        A((2, 3)),
        (4,),
        error=RuntimeError,
        message="expected input with shape [*, 4], but got input of size[2, 3]",
    ),
    no(
        "batch_norm",
        A((1, 3)),
        None,
        None,
        training=True,
        error=ValueError,
        message="Expected more than 1 value per channel when training",
    ),
    no(
        "batch_norm",
        A((2, 3)),
        A((4,)),
        A((3,)),
        error=RuntimeError,
        message="running_mean should contain 3 elements not 4",
    ),
    no(
        "group_norm",
        A((2, 5)),
        2,
        error=RuntimeError,
        message="to be divisible by num_groups",
    ),
    no(
        "dropout",
        A((2, 3)),
        1.5,
        error=ValueError,
        message="dropout probability has to be between 0 and 1, but got 1.5",
    ),
    no(
        "scaled_dot_product_attention",
        A((3,)),
        A((4, 3)),
        A((4, 3)),
        error=RuntimeError,
        message="to all be  at least 2 dimensional",
    ),
    no(
        "mse_loss",
        X,
        X,
        reduction="foo",
        error=ValueError,
        message="foo is not a valid",
    ),
    no(
        "cross_entropy",
        X,
        V((0, 5), "i"),
        error=IndexError,
        message="Target 5 is out of bounds.",
    ),
    no(
        "cross_entropy",
        X,
        V((0,), "i"),
        error=ValueError,
        message="Expected input batch_size (2) to match target batch_size (1).",
    ),
    no(
        "cross_entropy",
        X,
        A((2,)),
        error=RuntimeError,
        message="expected target dtype to be Long or Byte, but got Float",
    ),
    no(
        "cross_entropy",
        A((2, 3, 4)),
        V(((0, 1), (1, 2)), "i"),
        error=RuntimeError,
        message="Expected target size [2, 4], got [2, 2]",
    ),
    no(
        "binary_cross_entropy",
        V((1.5, 0.5)),
        V((1.0, 0.0)),
        error=RuntimeError,
        message="all elements of input should be between 0 and 1",
    ),
    no(
        "binary_cross_entropy_with_logits",
        X,
        A((2,)),
        error=ValueError,
        message="must be the same as input size (torch.Size([2, 3]))",
    ),
    no(
        "interpolate",
        A((1, 2, 3)),
        size=2,
        mode="bilinear",
        error=NotImplementedError,
        message="Got 3D input, but bilinear mode needs 4D input",
    ),
    no(
        "multi_margin_loss",
        X,
        V((0, 1, 2), "i"),
        error=RuntimeError,
        message="Expected target size [2], but got [3]. Input has shape [2, 3].",
    ),
    no(
        "multi_margin_loss",
        X,
        A((2,)),
        error=RuntimeError,
        message="expected scalar type Long but found Float",
    ),
    no(
        "max_unpool2d",
        A((1, 1, 2, 2)),
        V(((((0, 1), (2, 99)),),), "i"),
        2,
        error=RuntimeError,
        message="Found an invalid max index: 99 (output volumes are of size 4x4)",
    ),
    no(
        "max_unpool1d",
        A((1, 1, 2)),
        V((((0, 1, 2),),), "i"),
        2,
        error=RuntimeError,
        message="([1, 1, 2, 1]) but got indices tensor with shape: [1, 1, 3, 1]",
    ),
    no(
        "max_unpool3d",
        A((1, 1, 1, 2, 2)),
        A((1, 1, 1, 2, 2)),
        2,
        error=RuntimeError,
        message="elements in indices should be type int64",
    ),
    no(
        "pdist",
        A((3,)),
        error=RuntimeError,
        message="pdist only supports 2D tensors, got: 1D",
    ),
    no(
        "pdist",
        X,
        -1.0,
        error=RuntimeError,
        message="pdist only supports non-negative p values",
    ),
    no(
        "huber_loss",
        X,
        X,
        delta=-1.0,
        error=RuntimeError,
        message="does not support non-positive values for delta",
    ),
)
