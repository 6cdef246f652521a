"""Programs in which only the import is changed: the same order, the same results.

PyTorch's order is what hooks on all nodes of its graphs see. That of gradviz is read
from a trace, as the command line shows it.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradviz.analysis.nodes.execution_order import execution_order
from gradviz.capture import session
from gradviz.trace.format.model import Trace
from tests.parity.worlds import TORCH, torch

pytestmark = pytest.mark.parity

SCRIPTS = sorted(Path(__file__).with_name("scripts").glob("*.py"))

#: Their derivatives' formulas are written in other ops than PyTorch's.
OTHER_GRAPHS = {"second_derivatives"}


def for_gradviz(source: str) -> str:
    """`source` with the imports changed, and nothing else."""
    source = re.sub(
        r"^import torch$", "import gradviz as torch", source, flags=re.MULTILINE
    )
    return re.sub(
        r"^from torch[.\w]* import", "from gradviz import", source, flags=re.MULTILINE
    )


def results_of(source: str, name: str) -> list[Any]:
    namespace: dict[str, Any] = {}
    exec(compile(source, name, "exec"), namespace)
    return [one.detach().tolist() for one in namespace["results"]]


def in_gradviz(script: Path) -> tuple[list[Any], list[list[str]]]:
    with session.record() as recording:
        results = results_of(for_gradviz(script.read_text()), script.name)
    trace = recording.trace
    return results, [names_in(trace, task) for task in trace.tasks]


def names_in(trace: Trace, task: int) -> list[str]:
    """The nodes of a pass that are the program's own."""
    names = [row.name for row in execution_order(trace, task)]
    return names[names[:1] == ["GraphRoot"] :]


def in_torch(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[Any], list[list[str]]]:
    orders: list[list[str]] = []
    for name in ("backward", "grad"):
        original = getattr(torch.autograd, name)
        monkeypatch.setattr(torch.autograd, name, watched(original, orders))
    return results_of(script.read_text(), script.name), orders


def watched(
    original: Callable[..., Any], orders: list[list[str]]
) -> Callable[..., Any]:
    """`original`, which notes the order of the nodes that its pass starts."""

    def call(outputs: Any, *args: Any, **kwargs: Any) -> Any:
        order: list[str] = []
        orders.append(order)
        # A node that only has its gradient captured is started, but not run: of its
        # hooks only those of its tensors are called.
        inputs = as_list(args[0]) if original.__name__ == "grad" else []
        places = {TORCH.node(one): one.register_hook for one in inputs}
        for node in reachable([TORCH.node(one) for one in as_list(outputs)]):
            places.setdefault(node, node.register_prehook)
        handles = [
            register(lambda _, node=node: order.append(TORCH.name(node)))
            for node, register in places.items()
        ]
        try:
            return original(outputs, *args, **kwargs)
        finally:
            for handle in handles:
                handle.remove()

    return call


def as_list(tensors: Any) -> Sequence[Any]:
    return [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)


def reachable(roots: Sequence[Any]) -> list[Any]:
    nodes = list(dict.fromkeys(roots))
    for node in nodes:  # grows while it is walked
        children = [child for child, _ in TORCH.children(node) if child is not None]
        nodes += [child for child in dict.fromkeys(children) if child not in nodes]
    return nodes


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_script_runs_in_gradviz_as_in_pytorch(script, monkeypatch):
    results, orders = in_gradviz(script)
    expected, expected_orders = in_torch(script, monkeypatch)

    assert len(results) == len(expected) > 0
    for one, other in zip(results, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-6)
    if script.stem not in OTHER_GRAPHS:
        assert all(expected_orders)
        assert orders == expected_orders
