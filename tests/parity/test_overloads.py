"""Functions and methods take the arguments that PyTorch's take, and no others."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import gradviz as gv
from tests.parity.overloads import Parameter, functions, methods, value
from tests.parity.worlds import torch

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]

#: What of a function takes other arguments here, and why.
DIFFERENT = {
    "add": "PyTorch deprecates add(input, alpha, other)",
    "addcdiv": "likewise",
    "addcmul": "likewise",
    "addmm": "likewise",
    "sub": "likewise",
    "subtract": "PyTorch has alpha by position too",
    "subtract_": "likewise",
    "rsub": "likewise",
    "group_norm": "PyTorch has cudnn_enabled",
    "layer_norm": "likewise",
    "isin": "PyTorch names one element otherwise",
    "result_type": "PyTorch names a number otherwise",
    "native_layer_norm": "PyTorch names normalized_shape",
    "rrelu": "PyTorch has a generator",
    "rrelu_": "likewise",
    "trace": "gv.trace is the package of traces",
    "uniform_": "from_ is from here, too",
    "swapaxes_": "self is no keyword of methods here",
    "threshold_": "likewise",
}

#: They change with each call, or answer of the library itself.
LEFT_OUT = {"from_file", "set_", "get_device", "apply_", "map_", "map2_"}

FORMS = {
    "functions": (functions, lambda lib: lib),
    "methods": (methods, lambda lib: lib.Tensor),
}


def calls(form: list[Parameter]) -> Iterator[tuple[str, dict[str, str]]]:
    """Ways to call a form: which parameters are given, by place or by name."""
    least = {
        one.name: "name" if one.kind == "name" else "place"
        for one in form
        if not one.has_default
    }
    yield "at least", least
    for one in form:
        if one.has_default:
            yield f"with {one.name}", least | {one.name: "name"}
    placed = [one for one in form if one.kind == "place"]
    if all(one.kind != "any number" for one in form):
        yield "by place", least | {one.name: "place" for one in placed}
        yield (
            "by name",
            least
            | {o.name: "name" for o in placed if o.name in least and o.name != "self"},
        )
    if placed and not placed[-1].has_default and placed[-1].name != "self":
        yield "too little", {n: how for n, how in least.items() if n != placed[-1].name}


def outcome(
    lib: Any,
    function: Callable[..., Any],
    form: list[Parameter],
    given: dict[str, str],
    dtype: str,
) -> Any:
    args: list[Any] = []
    kwargs = {}
    for one in form:
        if one.name not in given:
            continue
        if one.kind == "any number":
            args += [value(lib, one, dtype)] * 2
        elif given[one.name] == "place":
            args.append(value(lib, one, dtype))
        else:
            kwargs[one.name if one.name != "self" else "input"] = value(lib, one, dtype)
    try:
        return described(function(*args, **kwargs))
    except TypeError:
        return "TypeError"
    except Exception:  # noqa: BLE001 - what it is about is compared elsewhere
        return "error"


def described(result: Any) -> Any:
    if isinstance(result, tuple | list):
        return [described(one) for one in result]
    if hasattr(result, "shape"):
        return tuple(result.shape), str(result.dtype).rpartition(".")[2]
    return type(result).__name__.lower()


def differences(kind: str) -> tuple[int, dict[str, Any]]:
    """Return the number of calls compared, and by name one with another end."""
    read, owner = FORMS[kind]
    different = {}
    compared = 0
    for name, forms in read().items():
        theirs = getattr(owner(torch), name, None)
        ours = getattr(owner(gv), name, None)
        if name in LEFT_OUT or theirs is None or ours is None:
            continue
        for form in forms:
            for dtype in ("float32", "int64"):
                _, least = next(calls(form))
                if outcome(torch, theirs, form, least, dtype) in ("TypeError", "error"):
                    continue
                for label, given in calls(form):
                    expected = outcome(torch, theirs, form, given, dtype)
                    if expected == "error" or "out" in given:
                        continue
                    compared += 1
                    if (found := outcome(gv, ours, form, given, dtype)) != expected:
                        different[name] = (label, dtype, expected, found)
                break
    return compared, different


@pytest.mark.stress
def test_every_form_of_a_call_is_one_here():
    compared, different = 0, {}
    for kind in FORMS:
        count, found = differences(kind)
        compared += count
        different |= found

    assert compared > 4000
    assert {name: how for name, how in different.items() if name not in DIFFERENT} == {}
    assert set(DIFFERENT) == set(different)
