"""Calls that elementwise ops refuse."""

from typing import Final

from tests.ops.cases.case import A, Refused, V

_NAMES: Final = {
    "bool": "Bool",
    "int64": "Long",
    "float32": "Float",
    "complex64": "ComplexFloat",
}

X: Final = A((2,))
MASK: Final = A((2,), kind="b")
INTS: Final = V((1, 2), kind="i")

#: Name, arguments, dtype, and what PyTorch calls the loop that is not there.
_KERNELS: Final = (
    ("floor_divide", (X, X), "bool", "div_floor_cpu"),
    ("remainder", (X, X), "bool", "remainder_cpu"),
    ("fmod", (X, X), "bool", "fmod_cpu"),
    ("floor_divide", (X, 2), "complex64", "div_floor_cpu"),
    ("remainder", (X, 2), "complex64", "remainder_cpu"),
    ("lt", (X, X), "complex64", "lt_cpu"),
    ("ge", (X, X), "complex64", "ge_cpu"),
    ("atan2", (X, X), "complex64", "atan2_cpu"),
    ("xlogy", (X, X), "complex64", "xlogy_cpu"),
    ("copysign", (X, X), "complex64", "copysign_cpu"),
    ("hypot", (X, X), "int64", "hypot_cpu"),
    ("logaddexp", (X, X), "int64", "logaddexp_cpu"),
    ("logaddexp2", (X, X), "int64", "logaddexp2_cpu"),
    ("floor", (X,), "bool", "floor_vml_cpu"),
    ("ceil", (X,), "bool", "ceil_vml_cpu"),
    ("trunc", (X,), "bool", "trunc_vml_cpu"),
    ("round", (X,), "bool", "round_vml_cpu"),
    ("frac", (X,), "bool", "frac_cpu"),
    ("abs", (X,), "bool", "abs_cpu"),
    ("round", (X,), "complex64", "round_vml_cpu"),
    ("frac", (X,), "complex64", "frac_cpu"),
    ("erf", (X,), "complex64", "erf_vml_cpu"),
    ("erfc", (X,), "complex64", "erfc_vml_cpu"),
    ("erfinv", (X,), "complex64", "erfinv_vml_cpu"),
    ("lgamma", (X,), "complex64", "lgamma_vml_cpu"),
    ("digamma", (X,), "complex64", "digamma"),
    ("logit", (X,), "complex64", "logit_cpu"),
    ("polygamma", (1, X), "complex64", "trigamma"),
    ("bitwise_and", (X, X), "float32", "bitwise_and_cpu"),
    ("bitwise_left_shift", (X, X), "float32", "lshift_cpu"),
    ("bitwise_right_shift", (X, X), "float32", "rshift_cpu"),
    ("gcd", (X, X), "float32", "gcd_cpu"),
    ("lcm", (X, X), "float32", "lcm_cpu"),
    ("bitwise_not", (X,), "float32", "bitwise_not_cpu"),
    ("bitwise_left_shift", (X, X), "bool", "lshift_cpu"),
    ("nn.functional.leaky_relu", (X,), "int64", "leaky_relu_cpu"),
    ("nn.functional.elu", (X,), "int64", "elu_cpu"),
    ("nn.functional.gelu", (X,), "int64", "GeluKernelImpl"),
    ("nn.functional.silu", (X,), "int64", "silu_cpu"),
    ("nn.functional.mish", (X,), "int64", "mish_cpu"),
    ("nn.functional.softplus", (X,), "int64", "softplus_cpu"),
    ("nn.functional.hardswish", (X,), "int64", "hardswish_cpu"),
    ("nn.functional.hardsigmoid", (X,), "int64", "hardsigmoid_cpu"),
    ("nn.functional.hardshrink", (X,), "int64", "hardshrink_cpu"),
    ("nn.functional.softshrink", (X,), "int64", "softshrink_check"),
    ("nn.functional.logsigmoid", (X,), "int64", "log_sigmoid_cpu"),
    ("nn.functional.glu", (X,), "int64", "glu_cpu"),
    ("nn.functional.softmax", (X, 0), "int64", "softmax_lastdim_kernel_impl"),
    ("nn.functional.softmax", (A((2, 2)), 0), "int64", "softmax_kernel_impl"),
    ("nn.functional.log_softmax", (X, 0), "int64", "log_softmax_lastdim_kernel_impl"),
    ("nn.functional.log_softmax", (A((2, 2)), 0), "int64", "log_softmax_kernel_impl"),
)

#: Name, arguments, the two lengths, and of which dimension.
_MISFITS: Final = (
    ("add", (X, A((3,))), 2, 3, 0),
    ("Tensor.__mul__", (A((2, 3)), A((2, 1, 2))), 3, 2, 2),
    ("maximum", (X, A((3,))), 2, 3, 0),
    ("where", (MASK, A((3,)), 1.0), 2, 3, 0),
    ("masked_fill", (X, A((3,), kind="b"), 1), 3, 2, 0),
    ("addcmul", (X, A((3,)), X), 2, 3, 0),
    ("clamp", (X, A((3,)), None), 2, 3, 0),
    ("lerp", (X, A((3,)), 0.5), 2, 3, 0),
    ("eq", (X, A((3,))), 2, 3, 0),
    ("logical_and", (X, A((3,))), 2, 3, 0),
)

#: Name, arguments, and which of them is of a class that it must not be.
_NUMBERS: Final = (
    ("sin", (2,), "input", 1, "int"),
    ("exp", (2,), "input", 1, "int"),
    ("relu", (2,), "input", 1, "int"),
    ("sigmoid", (2,), "input", 1, "int"),
    ("abs", (2,), "input", 1, "int"),
    ("neg", (2,), "input", 1, "int"),
    ("erf", (2,), "input", 1, "int"),
    ("nn.functional.gelu", (2,), "input", 1, "int"),
    ("nn.functional.relu", (2,), "input", 1, "int"),
    ("sin", ("a",), "input", 1, "str"),
    ("exp", (None,), "input", 1, "NoneType"),
    ("atan2", (X, 1), "other", 2, "int"),
    ("hypot", (X, 1), "other", 2, "int"),
    ("logaddexp", (X, 1), "other", 2, "int"),
    ("maximum", (X, 1), "other", 2, "int"),
    ("fmin", (X, 1), "other", 2, "int"),
)

REFUSED: Final = (
    *(
        Refused(
            name,
            args,
            NotImplementedError,
            f"\"{kernel}\" not implemented for '{_NAMES[dtype]}'",
            dtype=dtype,
        )
        for name, args, dtype, kernel in _KERNELS
    ),
    # Shapes that do not broadcast.
    *(
        Refused(
            name,
            args,
            RuntimeError,
            f"The size of tensor a ({a}) must match the size of tensor b ({b}) at "
            f"non-singleton dimension {dimension}",
        )
        for name, args, a, b, dimension in _MISFITS
    ),
    # Numbers where tensors must be.
    *(
        Refused(
            name,
            args,
            TypeError,
            f"{name.rpartition('.')[2]}(): argument '{parameter}' "
            f"(position {position}) must be Tensor, not {kind}",
        )
        for name, args, parameter, position, kind in _NUMBERS
    ),
    # All else.
    Refused(
        "nn.functional.prelu",
        (A((2, 3)), X),
        RuntimeError,
        "Mismatch of parameter numbers and input channel size. Found",
    ),
    Refused(
        "nn.functional.prelu",
        (A((2, 3)), A((2, 1))),
        RuntimeError,
        "Mismatch of parameter numbers and input channel size. Found",
    ),
    Refused(
        "Tensor.add_",
        (X, A((3, 2))),
        RuntimeError,
        "output with shape [2] doesn't match the broadcast shape [3, 2]",
    ),
    Refused(
        "Tensor.__iadd__",
        (X, 1.5),
        RuntimeError,
        "result type Float can't be cast to the desired output type Long",
        dtype="int64",
    ),
    Refused(
        "Tensor.div_",
        (X, 2),
        RuntimeError,
        "result type Float can't be cast to the desired output type Long",
        dtype="int64",
    ),
    Refused(
        "Tensor.add_",
        (X, 1j),
        RuntimeError,
        "result type ComplexFloat can't be cast to the desired output type",
    ),
    Refused(
        "Tensor.sin_",
        (X,),
        RuntimeError,
        "result type Float can't be cast to the desired output type Long",
        dtype="int64",
    ),
    Refused(
        "neg",
        (X,),
        RuntimeError,
        "Negation, the `-` operator, on a bool tensor is not supported. If",
        dtype="bool",
    ),
    Refused(
        "sub",
        (X, X),
        RuntimeError,
        "Subtraction, the `-` operator, with two bool tensors is not",
        dtype="bool",
    ),
    Refused(
        "sub",
        (X, 1),
        RuntimeError,
        "Subtraction, the `-` operator, with a bool tensor is not supported.",
        dtype="bool",
    ),
    Refused(
        "rsub",
        (X, 1),
        RuntimeError,
        "Subtraction, the `-` operator, with a bool tensor is not supported.",
        dtype="bool",
    ),
    Refused(
        "add",
        (X, 1),
        RuntimeError,
        "For integral input tensors, argument alpha must not be a floating",
        kwargs={"alpha": 1.5},
        dtype="int64",
    ),
    Refused(
        "add",
        (X, 1),
        RuntimeError,
        "For non-complex input tensors, argument alpha must not be a complex",
        kwargs={"alpha": 2j},
    ),
    Refused(
        "sub",
        (X, X),
        RuntimeError,
        "For integral input tensors, argument alpha must not be a floating",
        kwargs={"alpha": 1.5},
        dtype="int64",
    ),
    Refused(
        "addcdiv",
        (X, X, X),
        RuntimeError,
        "Integer division with addcdiv is no longer supported, and in a",
        dtype="int64",
    ),
    Refused(
        "div",
        (X, 2),
        RuntimeError,
        "div expected rounding_mode to be one of None, 'trunc', or 'floor'",
        kwargs={"rounding_mode": "up"},
    ),
    Refused(
        "floor_divide", (V((1, 2)), 0), RuntimeError, "ZeroDivisionError", dtype="int64"
    ),
    Refused(
        "remainder", (V((1, 2)), 0), RuntimeError, "ZeroDivisionError", dtype="int64"
    ),
    Refused("fmod", (V((1, 2)), 0), RuntimeError, "ZeroDivisionError", dtype="int64"),
    Refused(
        "div",
        (X, 2),
        NotImplementedError,
        "\"div_floor_cpu\" not implemented for 'ComplexFloat'",
        kwargs={"rounding_mode": "floor"},
        dtype="complex64",
    ),
    Refused(
        "div",
        (V((1, 2)), V((1, 0))),
        RuntimeError,
        "ZeroDivisionError",
        kwargs={"rounding_mode": "trunc"},
        dtype="int64",
    ),
    Refused(
        "pow",
        (X, -1),
        RuntimeError,
        "Integers to negative integer powers are not allowed.",
        dtype="int64",
    ),
    Refused(
        "lerp",
        (X, V((1.0, 2.0), kind="i"), 0.5),
        RuntimeError,
        "expected dtype float for `end` but got dtype long int",
    ),
    Refused(
        "maximum",
        (X, X),
        RuntimeError,
        "maximum not implemented for complex tensors.",
        dtype="complex64",
    ),
    Refused(
        "fmin",
        (X, X),
        RuntimeError,
        "fmin not implemented for complex tensors.",
        dtype="complex64",
    ),
    Refused(
        "floor",
        (X,),
        NotImplementedError,
        "floor is not supported for complex inputs",
        dtype="complex64",
    ),
    Refused(
        "trunc",
        (X,),
        NotImplementedError,
        "trunc is not supported for complex inputs",
        dtype="complex64",
    ),
    Refused(
        "sign",
        (X,),
        NotImplementedError,
        "Unlike NumPy, torch.sign is not intended to support complex",
        dtype="complex64",
    ),
    Refused(
        "signbit",
        (X,),
        NotImplementedError,
        "signbit is not implemented for complex tensors.",
        dtype="complex64",
    ),
    Refused(
        "isposinf",
        (X,),
        RuntimeError,
        "isposinf does not support complex inputs.",
        dtype="complex64",
    ),
    Refused(
        "deg2rad",
        (X,),
        RuntimeError,
        "deg2rad is not supported for complex tensors.",
        dtype="complex64",
    ),
    Refused(
        "relu",
        (X,),
        NotImplementedError,
        "clamp is not supported for complex types",
        dtype="complex64",
    ),
    Refused(
        "clamp_min",
        (X, 0),
        NotImplementedError,
        "clamp is not supported for complex types",
        dtype="complex64",
    ),
    Refused(
        "polygamma",
        (-1, X),
        RuntimeError,
        "polygamma(n, x) does not support negative n.",
    ),
    Refused("mvlgamma", (X, 0), RuntimeError, "p has to be greater than or equal to 1"),
    Refused(
        "round",
        (X,),
        NotImplementedError,
        "\"round_cpu\" not implemented for 'Long'",
        kwargs={"decimals": 1},
        dtype="int64",
    ),
    Refused(
        "clamp",
        (X,),
        RuntimeError,
        "torch.clamp: At least one of 'min' or 'max' must not be None",
    ),
    Refused(
        "clamp",
        (X, 0, 1),
        NotImplementedError,
        "clamp is not supported for complex types",
        dtype="complex64",
    ),
    Refused(
        "where",
        (X, 1, 2),
        RuntimeError,
        "where expected condition to be a boolean tensor, but got a tensor",
    ),
    Refused(
        "masked_fill",
        (X, X, 1),
        RuntimeError,
        "masked_fill_ only supports boolean masks, but got mask with dtype",
    ),
    Refused(
        "masked_fill",
        (X, MASK, X),
        RuntimeError,
        "masked_fill_ only supports a 0-dimensional value tensor, but got",
    ),
    Refused(
        "masked_fill",
        (X, MASK, 1j),
        RuntimeError,
        "value cannot be converted to type float without overflow",
    ),
    Refused(
        "imag",
        (X,),
        RuntimeError,
        "imag is not implemented for tensors with non-complex dtypes.",
    ),
    Refused(
        "view_as_real",
        (X,),
        RuntimeError,
        "view_as_real is only supported for complex tensors",
    ),
    Refused(
        "view_as_complex",
        (A((3,)),),
        RuntimeError,
        "Tensor must have a last dimension of size 2",
    ),
    Refused(
        "view_as_complex",
        (X,),
        RuntimeError,
        "view_as_complex is only supported for half, float and double",
        dtype="int64",
    ),
    Refused(
        "view_as_complex",
        (A(()),),
        RuntimeError,
        "Input tensor must have one or more dimensions",
    ),
    Refused(
        "complex",
        (X, INTS),
        RuntimeError,
        "Expected both inputs to be Half, Float or Double tensors but got",
    ),
    Refused(
        "complex",
        (X, X),
        RuntimeError,
        "Expected both inputs to be Half, Float or Double tensors but got",
        dtype="int64",
    ),
    Refused(
        "polar",
        (X, X),
        RuntimeError,
        "Expected both inputs to be Half, Float or Double tensors but got",
        dtype="int64",
    ),
    Refused(
        "Tensor.__invert__",
        (X,),
        TypeError,
        "~ (operator.invert) is only implemented on integer and Boolean-type",
    ),
    Refused("isclose", (X, INTS), RuntimeError, "Float did not match Long"),
    Refused(
        "isclose",
        (X, X, -1.0),
        RuntimeError,
        "rtol must be greater than or equal to zero, but got -1",
    ),
    Refused(
        "heaviside",
        (X, INTS),
        RuntimeError,
        "heaviside is not yet implemented for tensors with different dtypes.",
    ),
    Refused(
        "nn.functional.softmax",
        (X, 2),
        IndexError,
        "Dimension out of range (expected to be in range of [-1, 0], but got",
    ),
    Refused(
        "nn.functional.softmax",
        (A(()), 1),
        IndexError,
        "Dimension out of range (expected to be in range of [-1, 0], but got",
    ),
    Refused(
        "nn.functional.log_softmax",
        (X, 2),
        IndexError,
        "Dimension out of range (expected to be in range of [-1, 0], but got",
    ),
    Refused(
        "nn.functional.log_softmax",
        (A(()), 1),
        IndexError,
        "Dimension out of range (expected to be in range of [-1, 0], but got",
    ),
    Refused(
        "relu",
        (X,),
        RuntimeError,
        "Boolean inputs not supported for relu",
        dtype="bool",
    ),
    Refused(
        "nn.functional.hardtanh",
        (X, 1.0, -1.0),
        ValueError,
        "min_val cannot be greater than max_val",
    ),
    Refused(
        "nn.functional.celu",
        (X, 0),
        RuntimeError,
        "ZeroDivisionError: alpha cannot be 0 for CELU",
    ),
    Refused(
        "nn.functional.gelu",
        (X,),
        RuntimeError,
        "approximate argument must be either none or tanh.",
        kwargs={"approximate": "sin"},
    ),
    Refused(
        "nn.functional.glu",
        (A((3,)),),
        RuntimeError,
        "Halving dimension must be even, but dimension 0 is size 3",
    ),
    Refused(
        "nn.functional.glu",
        (A(()),),
        RuntimeError,
        "glu does not support scalars because halving size must be even",
    ),
    Refused(
        "nn.functional.softshrink",
        (X, -1.0),
        RuntimeError,
        "lambda must be in range [0, 3.40282e+38] for input dtype Float, but",
    ),
    Refused(
        "nn.functional.rrelu",
        (X, 0.5, 0.2),
        RuntimeError,
        "Lower bound should be less than or equal to the upper bound",
    ),
    Refused(
        "nn.functional.prelu",
        (X, V((1,), kind="i")),
        RuntimeError,
        "prelu: Type promoting not supported. Got Float and Long",
    ),
    *(
        Refused(
            name,
            (X, 2),
            TypeError,
            f"{name}(): argument '{argument}' (position 2) must be Tensor, not int",
        )
        for name, argument in (
            ("isclose", "other"),
            ("heaviside", "values"),
            ("complex", "imag"),
            ("polar", "angle"),
        )
    ),
)
