"""Odd values end in errors and deep structures in nothing: no call ends the process.

Each program has a process of its own, which a fault of compiled code would end.
"""

import gc
import weakref
from typing import Any

import pytest

from gradviz.engine import InputMetadata
from gradviz.engine.graph.node import metadata_for
from tests.faults.programs import Ended, run_campaign, run_program

#: Deep enough to overflow a stack of 8 MB where each object is freed inside of another.
_DEPTH = 200_000


@pytest.mark.parametrize(("what", "step"), [("fields", 401), ("calls", 2001)])
def test_odd_values_end_in_errors(what: str, step: int):
    """A sample; `tests/stress/test_odd_values.py` has many more."""
    report = run_campaign("odd_values", what, 3, step)

    assert report["failures"] == []
    assert report["num_trials"] > 15
    assert report["num_refused"] > 0


@pytest.mark.parametrize(
    "change",
    [
        "node.next_edges = (None,)",
        "node.next_edges = None",
        "node.next_edges = (Edge.__new__(Edge),) * 3",
        "node.input_metadata = (3,)",
        "node.input_metadata = None",
        "node.plan = None",
        "node.saved = None",
        "node.hooks = 3",
        "node.topological_nr = None",
        "del node.next_edges",
    ],
)
def test_a_node_that_was_spoiled_fails_its_backward(change: str):
    """Before the backward, and by a hook in the midst of it."""
    ended = run_program(
        f"""
        import gradviz as gv
        from gradviz.engine import Node

        def spoil(node):
            {change}

        def tried(y, node):
            try:
                spoil(node)
                y.backward()
            except Exception as error:
                print(type(error).__name__)
            else:
                print("nothing")

        x = gv.ones(2, requires_grad=True)
        y = (x * 2).exp().sum()
        tried(y, y.grad_fn)
        y = (x * 2).exp().sum()
        exp = y.grad_fn.next_edges[0].node
        y.register_hook(lambda grad: spoil(exp.next_edges[0].node))
        tried(y, Node())
        x.sum().backward()
        """
    )

    assert (ended.exit_code, ended.errors) == (0, "")
    assert set(ended.output.split()) <= {
        "AttributeError",
        "EngineError",
        "IndexError",
        "RuntimeError",
        "TypeError",
        "nothing",
    }


def test_nodes_that_were_never_made_whole_fail_their_pass():
    """A class of nodes may be called without arguments, or not even called."""
    ended = run_program(
        """
        import gradviz as gv
        from gradviz.engine import Node
        node = (gv.ones(2, requires_grad=True) * 2).grad_fn
        for root in (type(node)(), type(node).__new__(type(node)), Node.__new__(Node)):
            try:
                Engine().execute([Edge(root, 0)], [1.0])
            except Exception:
                print("refused")
        """
    )

    assert ended == Ended(0, "refused\nrefused\nrefused", "")


@pytest.mark.parametrize(
    "link",
    [
        "new = Edge(None); new.input_nr = last",
        "new = Node(); new.forward_stream = last",
        "new = Node(); new.module_path = last",
        "new = Node(); new.hooks = last",
        "new = Node([Edge(last, 0)] if last else [])",
        "new = InputMetadata((), last)",
        "new = InputMetadata(last, None)",
        "new = GraphRoot([], []); new.gradients = last",
        "new = View.__new__(View); new.steps = last",
    ],
)
def test_a_long_chain_is_freed_through_whatever_links_it(link: str):
    ended = run_program(
        f"""
        import resource
        resource.setrlimit(resource.RLIMIT_STACK, (8 << 20, -1))
        from gradviz.engine import GraphRoot, InputMetadata, Node
        from gradviz.ops.variables.view import View
        last = None
        for _ in range({_DEPTH}):
            {link}
            last = new
        del last, new
        print("freed")
        """
    )

    assert ended == Ended(0, "freed", "")


class Dtype:
    """A dtype of an array library of somebody's own, which may hold anything."""


@pytest.mark.parametrize("make", [InputMetadata, metadata_for])
def test_a_cycle_through_what_an_input_expects_is_collected(make: Any):
    dtype: Any = Dtype()
    dtype.metadata = make((), dtype, None)
    gone = weakref.ref(dtype)
    del dtype
    gc.collect()

    assert gone() is None


def test_a_value_that_contains_itself_raises_a_recursion_error():
    """An argument of a device's function, and what is hashed."""
    ended = run_program(
        """
        import gradviz as gv
        import numpy as np
        from gradviz.engine import InputMetadata

        array = gv.tensor([1.0], device="sim:0").array
        endless = [array]
        endless.append(endless)
        edge, metadata = Edge(None), InputMetadata((), None)
        edge.input_nr, metadata.dtype = (edge,), metadata
        for use in (
            lambda: np.concatenate(endless),
            lambda: np.stack([array, endless]),
            lambda: hash(edge),
            lambda: hash(metadata),
        ):
            try:
                use()
            except RecursionError:
                print("too deep")
        """
    )

    assert ended == Ended(0, "\n".join(["too deep"] * 4), "")
