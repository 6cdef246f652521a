"""The checks of gradients against what their receivers expect, in PyTorch's words."""

from typing import Any

import numpy as np
import pytest

import gradviz.backends.cpu  # noqa: F401 - makes NumPy arrays known
from gradviz.backends.base import backend_of
from gradviz.backends.device import CPU, Device
from gradviz.engine import Edge, Engine, InputMetadata
from gradviz.engine.graph.validation import is_expandable_to, sum_to, validate_outputs
from tests.engine.nodes import SIM_0, SIM_1, Call, Sink

AT_0 = "invalid gradient at index 0 -"
NO_SEQUENCE = (
    "invalid result: expected a tuple or list with one gradient for each of its 1 "
    "next_edges, but got NoneType"
)

F32, F64, C128, I64 = (
    np.dtype(name) for name in ("float32", "float64", "complex128", "int64")
)


def expecting(
    shape: tuple[int, ...], dtype: Any = F64, device: Device = CPU
) -> tuple[Edge, ...]:
    sink = Call(lambda *_: (), metadata=(InputMetadata(shape, dtype, device),))
    return (Edge(sink, 0),)


def on(device: Device, array: np.ndarray) -> Any:
    return backend_of(device).from_host(array, device)


def refusal(edges: tuple[Edge, ...], *gradients: Any) -> str:
    with pytest.raises(RuntimeError) as caught:
        validate_outputs(edges, gradients)
    return str(caught.value)


class TestCount:
    @pytest.mark.parametrize("gradients", [(), (1.0, 1.0)])
    def test_there_must_be_one_gradient_for_each_edge(self, gradients: Any):
        """V1."""
        assert refusal((Edge(Sink()),), *gradients) == (
            f"invalid number of gradients - expected 1, but got {len(gradients)}"
        )

    @pytest.mark.parametrize("result", [None, 1.0, np.ones(1), iter(()), "x", {}])
    def test_a_result_that_is_no_sequence_is_refused(self, result: Any):
        """V1."""
        with pytest.raises(TypeError, match="expected a tuple or list") as caught:
            validate_outputs((Edge(Sink()),), result)
        assert str(caught.value).endswith(f"but got {type(result).__name__}")

    def test_a_list_is_as_good_as_a_tuple(self):
        assert validate_outputs((Edge(Sink()),), [1.0]) == [1.0]


class TestSkipping:
    def test_an_undefined_gradient_fits_everywhere(self):
        """V2."""
        assert validate_outputs(expecting((3,)), (None,)) == (None,)

    def test_a_gradient_that_goes_nowhere_is_not_checked(self):
        """V2."""
        gradient = object()
        assert validate_outputs((Edge(None),), (gradient,)) == (gradient,)

    def test_an_input_without_metadata_takes_anything(self):
        gradient = object()
        assert validate_outputs((Edge(Sink()),), (gradient,)) == (gradient,)

    def test_a_gradient_that_fits_is_passed_on_as_it_is(self):
        gradient = np.ones(3)
        gradients = (gradient,)

        assert validate_outputs(expecting((3,)), gradients) is gradients


class TestShape:
    @pytest.mark.parametrize(
        ("shape", "got", "expected"),
        [
            ((3,), np.ones((2, 3)), np.full(3, 2.0)),
            ((1, 3), np.ones((2, 3)), np.full((1, 3), 2.0)),
            ((2, 1), np.ones((2, 3)), np.full((2, 1), 3.0)),
            ((), np.ones((2, 3)), np.array(6.0)),
            ((1,), np.ones((4, 2, 3)), np.array([24.0])),
            ((0,), np.ones((2, 0)), np.ones(0)),
        ],
    )
    def test_a_broadcast_gradient_is_summed(self, shape: Any, got: Any, expected: Any):
        """V3."""
        (gradient,) = validate_outputs(expecting(shape), (got,))

        np.testing.assert_array_equal(gradient, expected)
        assert gradient.shape == shape

    def test_a_shape_that_no_broadcasting_explains_is_refused(self):
        """V3."""
        assert refusal(expecting((5, 5)), np.ones(10)) == (
            "invalid gradient at index 0 - got [10] but expected shape compatible "
            "with [5, 5]"
        )

    def test_a_gradient_smaller_than_expected_is_refused(self):
        """V3: it is summed down, never broadcast up."""
        assert "got [] but expected shape compatible with [3]" in refusal(
            expecting((3,)), np.array(1.0)
        )

    def test_the_message_names_the_place_among_several(self):
        """V3."""
        edges = expecting((3,)) + expecting((3,))

        assert refusal(edges, np.ones(3), np.ones(2)).startswith(
            "invalid gradient at index 1 "
        )

    def test_broadcasting_is_numpys(self):
        shapes = [(), (1,), (3,), (1, 3), (2, 1), (2, 3), (0,), (4,), (1, 1, 3)]
        for shape in shapes:
            for desired in shapes:
                try:
                    expandable = np.broadcast_shapes(shape, desired) == desired
                except ValueError:
                    expandable = False
                assert is_expandable_to(shape, desired) is expandable

    def test_sum_to_keeps_an_axis_that_was_one_already(self):
        np.testing.assert_array_equal(
            sum_to(np.ones((2, 1, 3)), (1, 3)), np.full((1, 3), 2.0)
        )


class TestDtype:
    @pytest.mark.parametrize("dtype", [F32, I64, np.dtype(bool)])
    def test_a_gradient_of_another_dtype_is_cast(self, dtype: Any):
        """V5, G18."""
        (gradient,) = validate_outputs(
            expecting((2,), F64), (np.ones(2, dtype=dtype),), str
        )

        assert gradient.dtype == F64
        np.testing.assert_array_equal(gradient, [1.0, 1.0])

    def test_no_expected_dtype_takes_any(self):
        """V5, C6: `grad_dtype` None."""
        given = np.ones(2, dtype=F32)

        (gradient,) = validate_outputs(expecting((2,), None), (given,))

        assert gradient.dtype == F32

    def test_a_complex_gradient_for_a_real_input_is_refused(self):
        """V4, G18: the bare text of the check."""
        assert refusal(expecting((2,)), np.ones(2, dtype=C128)).startswith(
            "Expected isFloatingType(grad.scalar_type()) || "
            "(input_is_complex == grad_is_complex) to be true, but got false."
        )

    def test_a_real_gradient_for_a_complex_input_is_cast(self):
        """V4."""
        (gradient,) = validate_outputs(expecting((2,), C128), (np.ones(2),))

        assert gradient.dtype == C128


class TestDevice:
    def test_a_gradient_on_another_device_is_refused(self):
        """V7."""
        assert refusal(expecting((2,)), on(SIM_0, np.ones(2))) == (
            "invalid gradient at index 0 - expected device cpu but got sim:0"
        )
        assert refusal(expecting((2,), F64, SIM_1), np.ones(2)) == (
            "invalid gradient at index 0 - expected device sim:1 but got cpu"
        )

    @pytest.mark.parametrize("device", [CPU, SIM_1])
    def test_a_gradient_without_dimensions_is_moved(self, device: Device):
        """V7."""
        given = on(SIM_0, np.array(3.0))

        (gradient,) = validate_outputs(expecting((), F64, device), (given,))

        assert float(gradient) == 3.0
        assert getattr(gradient, "device", CPU) in (device, "cpu")

    def test_a_broadcast_gradient_is_summed_before_it_is_moved(self):
        """V3, V7: what has no dimensions once it is summed may move."""
        given = on(SIM_0, np.ones(4))

        (gradient,) = validate_outputs(expecting(()), (given,))

        assert type(gradient) is not type(given)
        assert float(gradient) == 4.0


def test_a_gradient_without_shape_where_one_is_expected_is_named():
    with pytest.raises(TypeError) as caught:
        validate_outputs(expecting((2, 3)), (1.0,))

    assert str(caught.value) == (
        "invalid gradient at index 0 - expected an array of shape [2, 3] but got float"
    )


class TestContext:
    """A message names the node; one about the roots has no prefix."""

    @pytest.mark.parametrize(
        ("returned", "kind", "message"),
        [
            ((), RuntimeError, "invalid number of gradients - expected 1, but got 0"),
            (
                (np.ones(10),),
                RuntimeError,
                f"{AT_0} got [10] but expected shape compatible with [5, 5]",
            ),
            (
                (on(SIM_0, np.ones((5, 5))),),
                RuntimeError,
                f"{AT_0} expected device cpu but got sim:0",
            ),
            (
                ("text",),
                TypeError,
                f"{AT_0} expected an array of shape [5, 5] but got str",
            ),
            (
                None,
                TypeError,
                NO_SEQUENCE,
            ),
        ],
    )
    def test_inside_a_backward_the_node_is_named(
        self, engine: Engine, returned: Any, kind: type[Exception], message: str
    ):
        """V1, V3, V7, V8: `Function X returned an ...`."""
        root = Call(lambda _: returned, *expecting((5, 5)))

        with pytest.raises(kind) as caught:
            engine.execute([(root, 0)], [1.0])

        assert str(caught.value) == f"Function Call returned an {message}"

    def test_at_the_roots_the_message_stands_alone(self, engine: Engine):
        """X1, V3."""
        with pytest.raises(RuntimeError) as caught:
            engine.execute(expecting((5, 5)), [np.ones(10)])

        assert str(caught.value) == (
            "invalid gradient at index 0 - got [10] but expected shape compatible "
            "with [5, 5]"
        )

    def test_a_gradient_of_a_root_is_cast_and_reduced(self, engine: Engine):
        """X1, G18."""
        received: list[np.ndarray] = []
        root = Call(
            lambda grad: received.append(grad) or (),
            metadata=(InputMetadata((2,), F32),),
        )

        engine.execute([(root, 0)], [np.ones((3, 2))])

        assert received[0].dtype == F32
        np.testing.assert_array_equal(received[0], [3.0, 3.0])

    def test_the_number_of_gradients_of_the_roots_is_checked(self, engine: Engine):
        """X1, V1."""
        with pytest.raises(RuntimeError) as caught:
            engine.execute([(Sink(), 0)], [1.0, 2.0])

        assert str(caught.value) == (
            "invalid number of gradients - expected 1, but got 2"
        )
