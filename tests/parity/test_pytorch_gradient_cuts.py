"""Lines that ended gradients, of both engines: why a parameter has none."""

from collections.abc import Callable
from typing import Any

import pytest

import gradviz as gv
from gradviz.analysis.nodes.missing_gradients import MissingGradient, NoGradient
from gradviz.analysis.nodes.parameter_gradients import find_parameter_gradients
from gradviz.render.words.missing_gradient_text import missing_hints, missing_text

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity


def detached(lib: Any, x: Any) -> Any:
    return x.detach()


def data_of(lib: Any, x: Any) -> Any:
    return x.data


def numbers_of(lib: Any, x: Any) -> Any:
    return lib.tensor(x.tolist())


def largest(lib: Any, x: Any) -> Any:
    return x.argmax(1).float()


def added_without_a_graph(lib: Any, x: Any) -> Any:
    with lib.no_grad():
        return x + 1


def through_numpy(lib: Any, x: Any) -> Any:
    return lib.from_numpy(x.detach().numpy())


def missing(
    lib: Any, end: Callable[[Any, Any], Any], **options: Any
) -> MissingGradient:
    """Return why a layer has no gradient whose result goes through a function."""
    layer, scale = lib.nn.Linear(2, 2), lib.ones(1, requires_grad=True)
    with gv.record(source="torch", **options) as recording:
        (end(lib, layer(lib.ones(3, 2))) * scale).sum().backward()
    found = find_parameter_gradients(recording.trace, recording.trace.tasks[-1:])
    row = next(one for one in found.rows if one.names[0].endswith(".weight"))
    assert row.missing is not None
    return row.missing


@pytest.mark.parametrize("lib", [gv, torch])
@pytest.mark.parametrize(
    ("end", "operation"),
    [(detached, "detach"), (data_of, ".data"), (numbers_of, "tolist")],
)
def test_the_line_that_ended_a_gradient_is_told(
    lib: Any, end: Callable[[Any, Any], Any], operation: str
) -> None:
    found = missing(lib, end, check_finite=True)

    assert found.reason is NoGradient.RESULT_NOT_USED
    (cut,) = found.cuts
    line = end.__code__.co_firstlineno + 1
    assert cut.operation == operation
    assert cut.location.endswith(f"test_pytorch_gradient_cuts.py:{line}")
    assert f"gradients ended at {operation} (" in missing_text(found)
    assert f"test_pytorch_gradient_cuts.py:{line}" in " ".join(missing_hints(found))


@pytest.mark.parametrize(
    ("end", "line", "operation"),
    [
        (largest, 1, "argmax"),
        (added_without_a_graph, 2, "add under no_grad"),
        (through_numpy, 1, "detach"),
    ],
)
def test_of_pytorch_each_function_that_ends_a_gradient_is_heard(
    end: Callable[[Any, Any], Any], line: int, operation: str
) -> None:
    cut, *_ = missing(torch, end, check_finite=True).cuts

    assert cut.operation == operation
    assert cut.location.endswith(f":{end.__code__.co_firstlineno + line}")


def test_without_checks_no_line_of_pytorch_is_known() -> None:
    found = missing(torch, detached)

    assert found.cuts == ()
    assert "gradients ended" not in missing_text(found)


@pytest.mark.parametrize("lib", [gv, torch])
def test_losses_that_are_logged_after_a_pass_are_no_cut_of_the_next(lib: Any) -> None:
    layer, scale = lib.nn.Linear(2, 2), lib.ones(1, requires_grad=True)
    with gv.record(source="torch", check_finite=True) as recording:
        for _ in range(2):
            layer(lib.ones(3, 2))
            loss = (scale * 2).sum()
            loss.backward()
            loss.item()

    found = find_parameter_gradients(recording.trace, recording.trace.tasks[-1:])
    row = next(one for one in found.rows if one.names[0].endswith(".weight"))
    assert row.missing is not None
    assert row.missing.cuts == ()
