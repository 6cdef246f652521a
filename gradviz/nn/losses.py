"""Losses as modules: the functions of `gradviz.nn.functional`, with arguments."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from gradviz.nn import functional as F  # noqa: N812 - PyTorch's habit
from gradviz.nn.distance import PairwiseDistance
from gradviz.nn.module import Module
from gradviz.ops.layers.loss_reduction import chosen_reduction
from gradviz.tensors.tensor import Tensor


class Loss(Module):
    """Compares with a target, by a function with the module's arguments.

    Args:
        reduction: Result made of the losses of all elements: ``mean``, ``sum`` or
            ``none``. Losses take PyTorch's older ``size_average`` and ``reduce`` too.
        **arguments: Others of the function; tensors and None become buffers.
    """

    _function: ClassVar[str]
    _buffers_of: ClassVar[tuple[str, ...]] = ()

    def __init__(self, reduction: str = "mean", **arguments: Any) -> None:
        super().__init__()
        self.reduction = reduction
        self._arguments = (*arguments, "reduction")
        for name, value in arguments.items():
            if name in self._buffers_of:
                self.register_buffer(name, value)
            else:
                setattr(self, name, value)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss: a single number unless `reduction` is ``none``."""
        arguments = {name: getattr(self, name) for name in self._arguments}
        return getattr(F, self._function)(input, target, **arguments)


class L1Loss(Loss):
    """The absolute difference."""

    _function = "l1_loss"

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(chosen_reduction(size_average, reduce, reduction))


class MSELoss(Loss):
    """The squared difference."""

    _function = "mse_loss"

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(chosen_reduction(size_average, reduce, reduction))


class SmoothL1Loss(Loss):
    """The squared difference below `beta`, the absolute one above."""

    _function = "smooth_l1_loss"

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ) -> None:
        super().__init__(chosen_reduction(size_average, reduce, reduction), beta=beta)


class HuberLoss(Loss):
    """Like `SmoothL1Loss`, times `delta`."""

    _function = "huber_loss"

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction, delta=delta)


class NLLLoss(Loss):
    """Minus the logarithm of the probability that is given to the right class."""

    _function = "nll_loss"
    _buffers_of = ("weight",)

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(
            chosen_reduction(size_average, reduce, reduction),
            weight=weight,
            ignore_index=ignore_index,
        )


class CrossEntropyLoss(Loss):
    """`NLLLoss` of a log-softmax."""

    _function = "cross_entropy"
    _buffers_of = ("weight",)

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(
            chosen_reduction(size_average, reduce, reduction),
            weight=weight,
            ignore_index=ignore_index,
            label_smoothing=label_smoothing,
        )


class BCELoss(Loss):
    """The cross entropy of two classes, of probabilities."""

    _function = "binary_cross_entropy"
    _buffers_of = ("weight",)

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(
            chosen_reduction(size_average, reduce, reduction), weight=weight
        )


class BCEWithLogitsLoss(Loss):
    """The cross entropy of two classes, from logits."""

    _function = "binary_cross_entropy_with_logits"
    _buffers_of = ("weight", "pos_weight")

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(
            chosen_reduction(size_average, reduce, reduction),
            weight=weight,
            pos_weight=pos_weight,
        )


class KLDivLoss(Loss):
    """The divergence of distributions, of logarithms of probabilities."""

    _function = "kl_div"

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        log_target: bool = False,
    ) -> None:
        super().__init__(
            chosen_reduction(size_average, reduce, reduction), log_target=log_target
        )


class PoissonNLLLoss(Loss):
    """Minus the logarithm of a Poisson probability, of its mean or the logarithm."""

    _function = "poisson_nll_loss"

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: bool | None = None,
        eps: float = 1e-8,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(
            chosen_reduction(size_average, reduce, reduction),
            log_input=log_input,
            full=full,
            eps=eps,
        )

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        """The loss: a single number unless `reduction` is ``none``."""
        return super().forward(log_input, target)


class SoftMarginLoss(Loss):
    """``log(1 + exp(-target * input))``, of targets 1 and -1."""

    _function = "soft_margin_loss"

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(chosen_reduction(size_average, reduce, reduction))


class HingeEmbeddingLoss(Loss):
    """The input for targets 1, and its shortfall from `margin` for targets -1."""

    _function = "hinge_embedding_loss"

    def __init__(
        self,
        margin: float = 1.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(
            chosen_reduction(size_average, reduce, reduction), margin=margin
        )


class MultiMarginLoss(Loss):
    """Amount by which other classes come within `margin` of the right one."""

    _function = "multi_margin_loss"
    _buffers_of = ("weight",)

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(
            chosen_reduction(size_average, reduce, reduction),
            p=p,
            margin=margin,
            weight=weight,
        )


class MultiLabelMarginLoss(Loss):
    """Like `MultiMarginLoss`, where several classes are right."""

    _function = "multilabel_margin_loss"

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(chosen_reduction(size_average, reduce, reduction))


class MultiLabelSoftMarginLoss(Loss):
    """The cross entropy of each of several classes, averaged over them."""

    _function = "multilabel_soft_margin_loss"
    _buffers_of = ("weight",)

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(
            chosen_reduction(size_average, reduce, reduction), weight=weight
        )


class LossOfThree(Loss):
    """A loss of two inputs and a target, or of three inputs."""

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:  # type: ignore[override]
        """The loss: a single number unless `reduction` is ``none``."""
        arguments = {name: getattr(self, name) for name in self._arguments}
        return getattr(F, self._function)(input1, input2, target, **arguments)


class GaussianNLLLoss(LossOfThree):
    """Minus the logarithm of a normal density: of input, target and variance."""

    _function = "gaussian_nll_loss"

    def __init__(
        self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction, full=full, eps=eps)

    def forward(self, input: Tensor, target: Tensor, var: Tensor) -> Tensor:  # type: ignore[override]
        """The loss: a single number unless `reduction` is ``none``."""
        return super().forward(input, target, var)


class CosineEmbeddingLoss(LossOfThree):
    """Distance of two vectors from the same direction, or from any in common."""

    _function = "cosine_embedding_loss"

    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(
            chosen_reduction(size_average, reduce, reduction), margin=margin
        )


class MarginRankingLoss(LossOfThree):
    """Shortfall of the greater of two inputs from being greater by `margin`."""

    _function = "margin_ranking_loss"

    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(
            chosen_reduction(size_average, reduce, reduction), margin=margin
        )


class TripletMarginLoss(LossOfThree):
    """Shortfall of an anchor from being nearer to one vector by `margin`."""

    _function = "triplet_margin_loss"

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(
            chosen_reduction(size_average, reduce, reduction),
            margin=margin,
            p=p,
            eps=eps,
            swap=swap,
        )

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:  # type: ignore[override]
        """The loss: a single number unless `reduction` is ``none``."""
        return super().forward(anchor, positive, negative)


class TripletMarginWithDistanceLoss(LossOfThree):
    """Like `TripletMarginLoss`, with any measure of distance.

    Args:
        distance_function: Of two tensors; `PairwiseDistance` if not given.
        margin: Distance by which the anchor is to be nearer.
        swap: True if the other's distance from the nearer one counts, where that is
            less.
        reduction: See `Loss`.
    """

    _function = "triplet_margin_with_distance_loss"

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(
            reduction,
            distance_function=distance_function or PairwiseDistance(),
            margin=margin,
            swap=swap,
        )

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:  # type: ignore[override]
        """The loss: a single number unless `reduction` is ``none``."""
        return super().forward(anchor, positive, negative)


class CTCLoss(Loss):
    """Negative log likelihood of target sequences, over all alignments.

    Args:
        blank: The class that stands for none.
        reduction: See `Loss`; a mean is of losses divided by the targets' lengths.
        zero_infinity: True if losses of targets that do not fit are 0.
    """

    _function = "ctc_loss"

    def __init__(
        self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False
    ) -> None:
        super().__init__(reduction, blank=blank, zero_infinity=zero_infinity)

    def forward(  # type: ignore[override]
        self,
        log_probs: Tensor,
        targets: Tensor,
        input_lengths: Tensor | Sequence[int],
        target_lengths: Tensor | Sequence[int],
    ) -> Tensor:
        """See `gradviz.nn.functional.ctc_loss`."""
        arguments = {name: getattr(self, name) for name in self._arguments}
        return F.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, **arguments
        )
