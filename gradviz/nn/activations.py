"""Activations as modules: the functions of `gradviz.nn.functional`, with arguments."""

import warnings
from typing import Any, ClassVar

from gradviz.nn import functional as F  # noqa: N812 - PyTorch's habit
from gradviz.nn import init
from gradviz.nn.factory import parameter
from gradviz.nn.module import Module
from gradviz.tensors.tensor import Tensor


class Activation(Module):
    """Calls a function with the arguments that the module was made with.

    The arguments are attributes, and those of `_shown` are in the module's text.
    """

    _function: ClassVar[str]
    _shown: ClassVar[tuple[str, ...]] = ()

    def __init__(self, **arguments: Any) -> None:
        super().__init__()
        self._arguments = tuple(arguments)
        for name, value in arguments.items():
            setattr(self, name, value)

    def forward(self, input: Tensor) -> Tensor:
        """The function of the input, of the same shape unless said otherwise."""
        arguments = {name: getattr(self, name) for name in self._arguments}
        if not arguments.get("inplace"):
            arguments.pop("inplace", None)
        return getattr(F, self._function)(input, **arguments)

    def extra_repr(self) -> str:
        """The arguments."""
        texts = [f"{name}={getattr(self, name)!r}" for name in self._shown]
        if getattr(self, "inplace", False):
            texts.append("inplace=True")
        return ", ".join(texts)


class Plain(Activation):
    """An activation without arguments."""

    def __init__(self) -> None:
        super().__init__()


class Threshold(Activation):
    """The input where it is above `threshold`, `value` elsewhere."""

    _function = "threshold"
    _shown: ClassVar[tuple[str, ...]] = ("threshold", "value")

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__(threshold=threshold, value=value, inplace=inplace)


class ReLU(Activation):
    """The input where it is above 0, 0 elsewhere."""

    _function = "relu"

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(inplace=inplace)


class RReLU(Activation):
    """A leaky ReLU with a random slope below 0 when training, the mean otherwise."""

    _function = "rrelu"
    _shown: ClassVar[tuple[str, ...]] = ("lower", "upper")

    def __init__(
        self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False
    ) -> None:
        super().__init__(lower=lower, upper=upper, inplace=inplace)
        self._arguments += ("training",)


def _warn_renamed(old: str, new: str) -> None:
    """Say that an argument has another name by now."""
    warnings.warn(
        f"keyword argument `{old}` is deprecated and rename to `{new}`",
        FutureWarning,
        stacklevel=3,
    )


class Hardtanh(Activation):
    """The input, cut off at `min_val` and `max_val`."""

    _function = "hardtanh"
    _shown: ClassVar[tuple[str, ...]] = ("min_val", "max_val")

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        if min_value is not None:
            _warn_renamed("min_value", "min_val")
            min_val = min_value
        if max_value is not None:
            _warn_renamed("max_value", "max_val")
            max_val = max_value
        if max_val <= min_val:
            raise ValueError("max_val must be greater than min_val")
        super().__init__(min_val=min_val, max_val=max_val, inplace=inplace)


class ReLU6(Hardtanh):
    """The input, cut off at 0 and 6."""

    _shown: ClassVar[tuple[str, ...]] = ()

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)


class Sigmoid(Plain):
    """``1 / (1 + exp(-input))``."""

    _function = "sigmoid"


class Hardsigmoid(Activation):
    """A sigmoid of three straight lines."""

    _function = "hardsigmoid"

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(inplace=inplace)

    def extra_repr(self) -> str:
        """Nothing, as in PyTorch."""
        return ""


class Tanh(Plain):
    """The hyperbolic tangent."""

    _function = "tanh"


class SiLU(Activation):
    """``input * sigmoid(input)``."""

    _function = "silu"

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(inplace=inplace)


class Mish(Activation):
    """``input * tanh(softplus(input))``."""

    _function = "mish"

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(inplace=inplace)


class Hardswish(Hardsigmoid):
    """``input * hardsigmoid(input)``."""

    _function = "hardswish"


class ELU(Activation):
    """The input above 0, ``alpha * (exp(input) - 1)`` below."""

    _function = "elu"
    _shown: ClassVar[tuple[str, ...]] = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(alpha=alpha, inplace=inplace)


class CELU(ELU):
    """The input above 0, ``alpha * (exp(input / alpha) - 1)`` below."""

    _function = "celu"


class SELU(Activation):
    """A scaled ELU that keeps mean 0 and variance 1."""

    _function = "selu"

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(inplace=inplace)


class GLU(Activation):
    """One half of the input times the sigmoid of the other half."""

    _function = "glu"
    _shown: ClassVar[tuple[str, ...]] = ("dim",)

    def __init__(self, dim: int = -1) -> None:
        super().__init__(dim=dim)


class GELU(Activation):
    """The input times how likely a normal number is below it."""

    _function = "gelu"
    _shown: ClassVar[tuple[str, ...]] = ("approximate",)

    def __init__(self, approximate: str = "none") -> None:
        super().__init__(approximate=approximate)


class Hardshrink(Activation):
    """The input, and 0 where it is within `lambd` of 0."""

    _function = "hardshrink"

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__(lambd=lambd)

    def extra_repr(self) -> str:
        """The argument."""
        return f"{self.lambd}"


class Softshrink(Hardshrink):
    """The input, moved towards 0 by `lambd`, at most to 0."""

    _function = "softshrink"


class LeakyReLU(Activation):
    """The input above 0, a fraction of it below."""

    _function = "leaky_relu"
    _shown: ClassVar[tuple[str, ...]] = ("negative_slope",)

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__(negative_slope=negative_slope, inplace=inplace)


class LogSigmoid(Plain):
    """The logarithm of the sigmoid."""

    _function = "logsigmoid"


class Softplus(Activation):
    """``log(1 + exp(beta * input)) / beta``, the input itself where that is large."""

    _function = "softplus"
    _shown: ClassVar[tuple[str, ...]] = ("beta", "threshold")

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__(beta=beta, threshold=threshold)


class Softsign(Plain):
    """``input / (1 + abs(input))``."""

    _function = "softsign"


class Tanhshrink(Plain):
    """``input - tanh(input)``."""

    _function = "tanhshrink"


class Softmin(Activation):
    """The softmax of the negative input."""

    _function = "softmin"
    _shown: ClassVar[tuple[str, ...]] = ("dim",)

    def __init__(self, dim: int | None = None) -> None:
        super().__init__(dim=dim)


class Softmax(Softmin):
    """``exp(input)``, scaled so that the sum along `dim` is 1."""

    _function = "softmax"


class LogSoftmax(Softmin):
    """The logarithm of the softmax."""

    _function = "log_softmax"


class Softmax2d(Module):
    """The softmax over the channels, for each place of an image."""

    def forward(self, input: Tensor) -> Tensor:
        """Shape ``(N, C, H, W)`` or ``(C, H, W)``.

        Raises:
            ValueError: The input has another number of dimensions.
        """
        if input.ndim not in {3, 4}:
            raise ValueError(
                f"Softmax2d: expected input to be 3D or 4D, got {input.ndim}D instead"
            )
        return F.softmax(input, -3)


class PReLU(Module):
    """A leaky ReLU with learned slopes below 0, one for all channels or one each.

    Args:
        num_parameters: 1, or the number of channels, which are dimension 1.
        init: Their first value.
        device: Their device.
        dtype: Their type.
    """

    def __init__(
        self,
        num_parameters: int = 1,
        init: float = 0.25,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = parameter(num_parameters, device=device, dtype=dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the slopes to their first value."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        """The input above 0, a learned fraction of it below."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """The number of slopes."""
        return f"num_parameters={self.num_parameters}"
