"""Norms of gradients, of both engines: `show parameters` and `explain`."""

import contextlib
import io
import math
from typing import Any

import pytest

import gradviz as gv
from gradviz.analysis.moments.explanation import explain
from gradviz.analysis.nodes.parameter_gradients import (
    ParameterUse,
    find_parameter_gradients,
)
from gradviz.render.terminal.explanation import print_explanation
from gradviz.trace.format.model import Trace

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity


def both(test: Any) -> Any:
    return pytest.mark.parametrize("lib", [gv, torch])(test)


def model_of(lib: Any) -> Any:
    layer = lib.nn.Linear(3, 2)
    layer.unused = lib.nn.Linear(1, 1)
    return layer


def recorded(lib: Any, layer: Any, num_passes: int = 1, **options: Any) -> Trace:
    with gv.record(source="torch", **options) as recording:
        for _ in range(num_passes):
            layer(lib.ones(4, 3) * 2).sum().backward()
    return recording.trace


def rows_of(trace: Trace) -> dict[str, ParameterUse]:
    found = find_parameter_gradients(trace, trace.tasks[-1:])
    return {one.names[0].partition(".")[2]: one for one in found.rows}


@both
def test_norms_are_those_of_the_gradients_that_the_program_has(lib: Any) -> None:
    layer = model_of(lib)

    rows = rows_of(recorded(lib, layer, 2, check_finite=True))

    for name, parameter in layer.named_parameters():
        norm = rows[name].gradient_norm
        if parameter.grad is None:
            assert norm is None
        else:
            assert norm is not None
            squares = (parameter.grad.double() ** 2).sum().item()
            assert float(norm) == pytest.approx(math.sqrt(squares))


@both
def test_norms_are_unknown_where_values_were_not_checked(lib: Any) -> None:
    rows = rows_of(recorded(lib, model_of(lib)))

    assert {one.gradient_norm for one in rows.values()} == {None}


@both
def test_the_norm_of_a_gradient_that_is_not_finite_is_told_as_text(lib: Any) -> None:
    layer = model_of(lib)
    with gv.record(source="torch", check_finite=True) as recording:
        (layer(lib.ones(4, 3)).sum() * math.nan).backward()

    assert rows_of(recording.trace)["weight"].gradient_norm == "nan"


@both
def test_a_gradient_that_is_only_returned_has_no_norm(lib: Any) -> None:
    layer = model_of(lib)
    with gv.record(source="torch", check_finite=True) as recording:
        lib.autograd.grad(layer(lib.ones(4, 3)).sum(), layer.weight)

    assert rows_of(recording.trace)["weight"].gradient_norm is None


@both
def test_an_explanation_of_a_parameter_tells_its_norm(lib: Any) -> None:
    layer = model_of(lib)
    trace = recorded(lib, layer, check_finite=True)
    row = rows_of(trace)["bias"]
    assert row.node is not None

    explanation = explain(trace, row.task, row.node)

    assert explanation.gradient_norm == row.gradient_norm is not None
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        print_explanation(explanation)
    assert "had the norm 5.657 after the pass" in " ".join(said.getvalue().split())
