"""The loss of sequences without an alignment: connectionist temporal classification.

Note [Paths]
~~~~~~~~~~~~
A target ``a b`` becomes the states ``_ a _ b _``, with a blank around each label. A
path through them stays, or goes on by one, or skips a blank between different labels.
``alpha[t, n, s]`` is the logarithm of the probability of all paths of sequence *n* that
are in state *s* at time *t*, ``beta`` that of all ways on from there, both with what
time *t* itself contributes. All sequences and states are computed at once, one time
after the other.

The gradient is PyTorch's: it takes for granted that `log_probs` came out of a
log_softmax, and is right for what went into that.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gradviz.backends.base import Array, beside, copy_to
from gradviz.backends.device import CPU
from gradviz.ops.conventions.dtype_names import scalar_type_name
from gradviz.ops.conventions.refusal import without_derivative
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.elementwise.arithmetic import div
from gradviz.ops.elementwise.selection import where
from gradviz.ops.layers.loss_reduction import check_reduction, reduced
from gradviz.ops.shapes.unit_dimensions import squeeze, unsqueeze
from gradviz.ops.variables.variable import Value, Variable, raw


class _States(NamedTuple):
    """The states of all sequences; see Note [Paths].

    Attributes:
        labels: Label that each stands for, shape ``(N, S)``.
        skips: True for states that may be reached from two states before.
        ends: True for states that may be the last.
        input_lengths: Length of each sequence.
    """

    labels: np.ndarray
    skips: np.ndarray
    ends: np.ndarray
    input_lengths: np.ndarray


def _states(
    targets: np.ndarray, inputs: np.ndarray, lengths: np.ndarray, blank: int
) -> _States:
    batch, longest = targets.shape
    labels = np.full((batch, 2 * longest + 1), blank)
    labels[:, 1::2] = targets
    skips = np.zeros(labels.shape, bool)
    skips[:, 3::2] = labels[:, 3::2] != labels[:, 1:-2:2]
    last = 2 * lengths[:, None] - np.arange(labels.shape[1])
    return _States(labels, skips, (last == 0) | (last == 1), inputs)


def _moved(paths: np.ndarray, by: int) -> np.ndarray:
    """Shift by `by` states, backward if negative; nothing beyond the ends."""
    result = np.full_like(paths, -np.inf)
    if by > 0:
        result[:, by:] = paths[:, :-by]
    else:
        result[:, :by] = paths[:, -by:]
    return result


def _felt(log_probs: np.ndarray, states: _States) -> np.ndarray:
    """Return the contribution of each state at each time: shape ``(T, N, S)``."""
    return np.take_along_axis(log_probs, states.labels[None], 2)


def _alphas(felt: np.ndarray, states: _States) -> np.ndarray:
    result = np.full_like(felt, -np.inf)
    result[0, :, :2] = felt[0, :, :2]
    for t in range(1, len(felt)):
        before = result[t - 1]
        skipped = np.where(states.skips, _moved(before, 2), -np.inf)
        paths = np.logaddexp(np.logaddexp(before, _moved(before, 1)), skipped)
        result[t] = paths + felt[t]
    return result


def _betas(felt: np.ndarray, states: _States) -> np.ndarray:
    result = np.full_like(felt, -np.inf)
    left = states.input_lengths[:, None] - 1
    after = np.full_like(felt[0], -np.inf)
    for t in reversed(range(len(felt))):
        skipped = _moved(np.where(states.skips, after, -np.inf), -2)
        paths = np.logaddexp(np.logaddexp(after, _moved(after, -1)), skipped)
        paths = np.where(left == t, np.where(states.ends, 0.0, -np.inf), paths)
        after = result[t] = (paths + felt[t]).astype(felt.dtype)
    return result


@differentiable(
    "CtcLossBackward0",
    results=("losses", "alphas"),
    plain=("alphas",),
    log_probs=lambda grad, log_probs, states, losses, alphas, zero_infinity: (
        _ctc_backward(grad, log_probs, states, losses, alphas, zero_infinity)
    ),
)
def _ctc(log_probs: Array, states: _States, zero_infinity: bool) -> tuple[Array, Array]:
    """Minus the logarithm of the probability of each target, and the alphas."""
    del zero_infinity  # for the gradient
    host = copy_to(log_probs, CPU)
    num_times, batch, _ = host.shape
    is_empty = states.input_lengths == 0
    if not num_times:
        alphas = np.zeros((0, *states.labels.shape), host.dtype)
        last = np.full(states.labels.shape, -np.inf)
    else:
        alphas = _alphas(_felt(host, states), states)
        last = alphas[states.input_lengths - 1, np.arange(batch)]
    last = np.where(is_empty[:, None], -np.inf, last)
    last[:, 0] = np.where(is_empty, 0.0, last[:, 0])
    losses = -np.logaddexp.reduce(np.where(states.ends, last, -np.inf), axis=1)
    return beside(log_probs, losses.astype(host.dtype)), beside(log_probs, alphas)


@differentiable(
    "NotImplemented",
    arrays=("losses", "alphas"),
    grad=without_derivative("_ctc_loss_backward"),
    log_probs=without_derivative("_ctc_loss_backward"),
)
def _ctc_backward(
    grad: Array,
    log_probs: Array,
    states: _States,
    losses: Array,
    alphas: Array,
    zero_infinity: bool,
) -> Array:
    """Return the gradient of the input of the log_softmax; see Note [Paths]."""
    num_times, batch, _ = log_probs.shape
    host = copy_to(log_probs, CPU)
    paths = copy_to(alphas, CPU) + _betas(_felt(host, states), states)
    sums = np.full_like(host, -np.inf)
    for s in range(paths.shape[2]):  # one state of each sequence cannot collide
        at = (slice(None), np.arange(batch), states.labels[:, s])
        sums[at] = np.logaddexp(sums[at], paths[:, :, s])
    by_class = beside(log_probs, sums)
    result = np.exp(log_probs) - np.exp(by_class + losses[:, None] - log_probs)
    result = result * grad[:, None]
    is_over = np.arange(num_times)[:, None] >= states.input_lengths
    zeros = beside(log_probs, is_over)
    if zero_infinity:
        zeros = zeros | np.isinf(losses)
    return np.where(zeros[..., None], 0, result).astype(log_probs.dtype)


def ctc_loss(
    log_probs: Value,
    targets: Value,
    input_lengths: Variable | Sequence[int],
    target_lengths: Variable | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Value:
    """Minus the logarithm of the probability of target sequences, however aligned.

    Args:
        log_probs: Logarithms of the probabilities of classes at each time, as
            log_softmax returns them: shape ``(T, N, C)``, or ``(T, C)``.
        targets: The classes: shape ``(N, S)``, or all of them in a row.
        input_lengths: Length of each sequence.
        target_lengths: Length of each target.
        blank: The class that stands for none.
        reduction: "none", "sum", or "mean" of losses divided by the targets' lengths.
        zero_infinity: True if losses of targets that do not fit are 0.

    Raises:
        RuntimeError: The shapes or lengths do not fit, or a gradient of the gradient is
            asked for.

    Source: torch/nn/functional.py and aten/src/ATen/native/LossCTC.cpp.
    """
    check_reduction(reduction)
    x = raw(log_probs)
    if x.dtype not in (np.float32, np.float64):
        name = scalar_type_name(x.dtype)
        raise NotImplementedError(f"\"ctc_loss_cpu\" not implemented for '{name}'")
    is_batched = x.ndim == 3
    if x.ndim in (1, 2):
        log_probs = unsqueeze(log_probs, 1)
        x = raw(log_probs)
    inputs, lengths = _lengths(input_lengths), _lengths(target_lengths)
    rows = _checked(x, copy_to(raw(targets), CPU), inputs, lengths, blank)
    states = _states(rows, inputs, lengths, blank)
    losses = _ctc(log_probs, states, zero_infinity)[0]
    if zero_infinity:
        losses = where(raw(losses) == np.inf, 0.0, losses)
    if reduction == "mean":
        divisors = np.maximum(lengths, 1).astype(x.dtype)
        losses = div(losses, beside(raw(losses), divisors))
    if not is_batched and reduction == "none":
        return squeeze(losses, 0)
    return reduced(losses, reduction)


def _lengths(lengths: Variable | Sequence[int]) -> np.ndarray:
    numbers = raw(lengths)
    if hasattr(numbers, "dtype"):
        numbers = copy_to(numbers, CPU)
    return np.atleast_1d(np.asarray(numbers, dtype=np.int64))


def _checked(
    x: Array, targets: np.ndarray, inputs: np.ndarray, lengths: np.ndarray, blank: int
) -> np.ndarray:
    """The targets in rows, the shorter ones padded, if everything fits."""
    if x.ndim != 3:
        raise _misfit(
            f"Expected 3-dimensional tensor, but got {x.ndim}-dimensional tensor for "
            f"argument #1 'log_probs'"
        )
    num_times, batch, num_classes = x.shape
    if not 0 <= blank < num_classes:
        raise RuntimeError("blank must be in label range")
    for name, one in (("input", inputs), ("target", lengths)):
        if len(one) != batch:
            raise RuntimeError(f"{name}_lengths must be of size batch_size")
    for length in lengths[lengths < 0][:1]:
        raise _misfit(
            f"Expected target_lengths to have value at least 0, but got value {length}"
        )
    rows = _in_rows(targets, lengths, blank)
    for length in inputs[inputs > num_times][:1]:
        raise _misfit(
            f"Expected input_lengths to have value at most {num_times}, but got value "
            f"{length}"
        )
    return rows


def _in_rows(targets: np.ndarray, lengths: np.ndarray, blank: int) -> np.ndarray:
    longest = int(np.max(lengths, initial=0))
    is_flat = targets.ndim == 1
    wanted = int(np.sum(lengths)) if is_flat else len(lengths)
    if len(targets) != wanted:
        raise _misfit(
            f"Expected tensor to have size {wanted} at dimension 0, but got size "
            f"{len(targets)} for argument #2 'targets'"
        )
    if not is_flat and targets.shape[1] < longest:
        raise _misfit(
            f"Expected tensor to have size at least {longest} at dimension 1, but got "
            f"size {targets.shape[1]} for argument #2 'targets'"
        )
    rows = np.full((len(lengths), longest), blank)
    counts = np.arange(longest) < lengths[:, None]
    rows[counts] = targets if is_flat else targets[:, :longest][counts]
    return rows


def _misfit(what: str) -> RuntimeError:
    return RuntimeError(
        f"{what} (while checking arguments for ctc_loss_allocate_outputs)"
    )


PUBLIC = [*names("F.f", ctc_loss)]
