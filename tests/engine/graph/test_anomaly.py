"""K8, E7, R1: anomaly mode, without any array library but NumPy."""

import re
import warnings

import numpy as np
import pytest

from gradviz.engine import Engine, Node
from gradviz.engine.graph import anomaly
from gradviz.engine.graph.anomaly import Anomaly
from tests.engine.nodes import Call, Pass, Sink


@pytest.fixture
def detecting():
    before = anomaly.switch(Anomaly(check_nan=True))
    yield
    anomaly.switch(before)


@pytest.fixture
def engine():
    engine = Engine()
    yield engine
    engine.stop()


class Spoil(Node):
    """Returns what it was told to."""

    def __init__(self, outputs, *next_edges):
        super().__init__(next_edges)
        self.outputs = outputs

    def apply(self, grad):
        return self.outputs


def spoiled(*outputs):
    return Spoil(outputs, *((Sink(), 0) for _ in outputs))


@pytest.mark.parametrize("nan", [float("nan"), np.array([1.0, np.nan])])
def test_a_nan_names_the_function_and_the_output(engine, detecting, nan):
    """E7."""
    node = spoiled(1.0, nan)

    with (
        pytest.warns(UserWarning, match="Error detected in Spoil"),
        pytest.raises(
            RuntimeError,
            match=r"^Function 'Spoil' returned nan values in its 1th output\.$",
        ),
    ):
        engine.execute([(node, 0)], [1.0])


def test_infinities_and_undefined_gradients_are_no_nan(engine, detecting):
    engine.execute([(spoiled(float("inf"), None), 0)], [1.0])


def test_check_nan_false_lets_a_nan_pass(engine):
    before = anomaly.switch(Anomaly(check_nan=False))
    try:
        engine.execute([(spoiled(float("nan")), 0)], [1.0])
    finally:
        anomaly.switch(before)


def test_without_the_mode_a_nan_is_a_number_like_any_other(engine):
    engine.execute([(spoiled(float("nan")), 0)], [1.0])


def raise_value_error(grad):
    raise ValueError("on purpose")


def test_any_error_tells_where_its_node_was_made(engine, detecting):
    """R1: not only a NaN's."""
    node = Call(raise_value_error)

    with (
        pytest.warns(UserWarning, match="Traceback of forward call") as caught,
        pytest.raises(ValueError, match="on purpose"),
    ):
        engine.execute([(node, 0)], [1.0])

    assert "node = Call(raise_value_error)" in str(caught[0].message)
    assert "gradviz/engine" not in str(caught[0].message)


def test_a_node_made_before_the_mode_was_on_says_that_nothing_is_known(engine):
    node = Call(raise_value_error)
    before = anomaly.switch(Anomaly(check_nan=True))
    try:
        with (
            pytest.warns(
                UserWarning,
                match=re.escape(
                    "Error detected in Call. No forward pass information available. "
                    "Enable detect anomaly during forward pass for more information."
                ),
            ),
            pytest.raises(ValueError, match="on purpose"),
        ):
            engine.execute([(node, 0)], [1.0])
    finally:
        anomaly.switch(before)


def test_a_node_made_in_a_backward_remembers_the_node_that_induced_it(
    engine, detecting
):
    """K8."""
    made = []
    outer = Call(lambda grad: made.append(Call(raise_value_error)))
    engine.execute([(outer, 0)], [1.0])

    with (
        pytest.warns(UserWarning, match="Call") as caught,
        pytest.raises(ValueError, match="on purpose"),
    ):
        engine.execute([(made[0], 0)], [1.0])

    texts = [str(one.message) for one in caught]
    assert len(texts) == 2
    assert texts[1].startswith(
        "\n\nPrevious calculation was induced by Call. Traceback"
    )
    assert "outer = Call(" in texts[1]


def test_a_node_made_after_a_pass_was_induced_by_none(engine, detecting):
    engine.execute([(Pass(Sink()), 0)], [1.0])
    node = Call(raise_value_error)

    with (
        pytest.warns(UserWarning, match="Error detected") as caught,
        pytest.raises(ValueError, match="on purpose"),
    ):
        engine.execute([(node, 0)], [1.0])

    assert len(caught) == 1


def test_the_error_reaches_the_caller_even_if_warnings_are_errors(engine, detecting):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="on purpose"):
            engine.execute([(Call(raise_value_error), 0)], [1.0])
