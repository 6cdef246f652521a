"""Cases of activations, as functions and as methods."""

from collections.abc import Iterator
from typing import Any, Final

from tests.ops.cases.case import A, Case, V
from tests.ops.cases.elementwise import unary


def activation(
    name: str, *args: Any, in_place: bool = False, **options: Any
) -> Iterator[Case]:
    """An activation as ``nn.functional`` has it."""
    yield from unary(
        name, -4, 4, module="nn.functional.", in_place=False, args=args, **options
    )
    if in_place:
        yield Case(f"nn.functional.{name}_", (A((3,)), *args))


CASES: Final = (
    *activation("relu", in_place=True),
    *activation("relu6"),
    *activation("leaky_relu", in_place=True),
    *activation("leaky_relu", 0.3),
    *activation("elu", in_place=True),
    *activation("elu", 0.7),
    *activation("selu", in_place=True),
    *activation("celu", in_place=True),
    *activation("celu", 0.7, rtol=1e-6),
    *activation("gelu"),
    Case("nn.functional.gelu", (A((2, 3)),), {"approximate": "tanh"}),
    *activation("silu"),
    *activation("mish"),
    *activation("softplus"),
    *activation("softplus", 2.0, 1.5),
    *activation("softsign"),
    *activation("hardtanh", in_place=True),
    *activation("hardtanh", -0.5, 1.5),
    *activation("hardsigmoid", second=False, rtol=1e-7),
    *activation("hardswish"),
    *activation("tanhshrink"),
    *activation("softshrink"),
    *activation("hardshrink"),
    *activation("logsigmoid"),
    *activation("threshold", 0.3, 2.0, in_place=True),
    *activation("sigmoid", edges=()),
    *activation("tanh", edges=()),
    Case("nn.functional.prelu", (A((2, 3, 2)), A((3,), 0.1, 0.5))),
    Case("nn.functional.prelu", (A((2, 3)), A((1,), 0.1, 0.5))),
    Case("nn.functional.prelu", (A((4,)), A((1,), 0.1, 0.5))),
    Case("nn.functional.glu", (A((3, 4)),)),
    Case("nn.functional.glu", (A((4, 3)), 0)),
    *(
        Case(f"nn.functional.{name}", (A(shape), dim))
        for name in ("softmax", "log_softmax", "softmin")
        for shape, dim in (
            ((2, 3), -1),
            ((2, 3), 0),
            ((2, 3, 2), 1),
            ((), 0),
            ((2, 0), 1),
            ((0, 2), 1),
        )
    ),
    Case("softmax", (A((2, 3)), 1)),
    Case("log_softmax", (A((2, 3)), 1)),
    Case("Tensor.softmax", (A((2, 3)), -1)),
    Case("Tensor.log_softmax", (A((2, 3)), 0)),
    *(
        Case(
            f"nn.functional.{name}",
            (V((1e4, -1e4, 0.0, 3.0)), 0),
            dtypes=("float64", "float32"),
            second=False,
            numeric=False,
        )
        for name in ("softmax", "log_softmax")
    ),
)
