import pytest

from gradviz.analysis.nodes.op_families import OpFamily, op_family


@pytest.mark.parametrize(
    ("operations", "family"),
    [
        ("Addmm Bmm Convolution Mv LinalgSvd Einsum", "products"),
        ("Sum1 Mean NativeLayerNorm MaxPool2DWithIndices Amax", "norms and sums"),
        ("Relu Tanh Softmax LogSoftmax Gelu LeakyRelu GeluBackward", "activations"),
        ("Embedding IndexSelect Gather Slice Where", "indexing"),
        ("Add Mul Neg Pow Exp Log Clamp Atanh Copysign Maximum", "pointwise"),
        ("NllLoss MseLoss BinaryCrossEntropyWithLogits", "losses"),
        ("T View UnsafeView Transpose Expand Cat UnsafeSplit", "shapes"),
        ("MyFunction Swish2000Custom", "other"),
    ],
)
def test_operations_of_one_kind_of_work_are_one_family(
    operations: str, family: OpFamily
) -> None:
    found = {name: op_family(name) for name in operations.split()}

    assert found == dict.fromkeys(operations.split(), family)


def test_names_that_are_data_have_a_family_too() -> None:
    assert op_family("") == op_family("\x1b[31m" + "x" * 300) == "other"
