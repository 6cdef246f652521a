"""Invalid fields of nodes, looked for only after an error.

Note [Fields are checked after an error]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
Users may set any field of a node, and code that uses it then fails with an unhelpful
error of Python's: an int has no attribute `tensor_pre`. Checking each field when it
is set would make every read of it a call in pure Python, and checking it when it is
used would cost each node of each pass. So nothing is checked while all goes well.
After a node has raised one of `FIELD_ERRORS`, the fields of the nodes that may have
caused it are inspected, and the user's error names the node and the field.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

from gradviz.backends.device import Device
from gradviz.backends.stream import Stream
from gradviz.engine.graph.node import (
    Edge,
    InputMetadata,
    Node,
    NodeHooks,
    odd_field_error,
)

#: Exceptions raised by the use of an odd value.
FIELD_ERRORS: Final = (AttributeError, TypeError, LookupError)

#: Stands for the value of a missing field.
_MISSING: Final = object()


class OddField(NamedTuple):
    """A field of a node with a value that the engine cannot use.

    Attributes:
        name: Its name, prefixed with the fields that lead to it.
        found: A short description of its value.
        expected: A short description of a valid value.
    """

    name: str
    found: str
    expected: str


def error_in_graph(error: BaseException, *roots: Node | None) -> BaseException:
    """Return the error that names the odd field in a graph, or `error` if none is odd.

    Looks at all nodes reachable from `roots`, on any thread.
    """
    nodes = [node for node in roots if node is not None]
    known = {id(node) for node in nodes}
    while nodes:
        node = nodes.pop()
        if (odd := odd_field(node)) is not None:
            return _error(node, odd, error)
        for edge in node.next_edges:
            if edge.node is not None and id(edge.node) not in known:
                known.add(id(edge.node))
                nodes.append(edge.node)
    return error


def error_at(error: BaseException, *nodes: Node) -> BaseException:
    """Check some nodes and the nodes their gradients go to; see `error_in_graph`.

    Runs after any error but an interrupt: shapes may not fit because a saved value was
    replaced, and there may be more gradients than edges because the edges were.
    """
    if not isinstance(error, Exception):
        return error
    for node in nodes:
        if (odd := odd_field(node)) is not None:
            return _error(node, odd, error)
        for edge in node.next_edges:
            if edge.node is not None and (odd := odd_field(edge.node)) is not None:
                return _error(edge.node, odd, error)
    for node in nodes:
        if (odd := _unusable_field(node, error)) is not None:
            return _error(node, odd, error)
    return error


def _unusable_field(node: Node, error: Exception) -> OddField | None:
    """Return the field of a node that must have caused an error, or None."""
    for cls in type(node).__mro__:
        if (blame := UNUSABLE_FIELDS.get(cls)) is not None:
            return blame(node, error)
    return None


def odd_field(node: Node) -> OddField | None:
    """Return the first field that the engine cannot use, or None."""
    with contextlib.suppress(Exception):  # a user's class may raise when it is asked
        for cls in reversed(type(node).__mro__):  # fields of a base class come first
            for odd in ODD_FIELDS.get(cls, _none)(node):
                return odd
    return None


def value_of(owner: object, name: str) -> object:
    """Return a field's value, or a stand-in of its own type if it is missing."""
    return getattr(owner, name, _MISSING)


def is_odd(
    owner: object, name: str, kinds: type | tuple[type, ...], expected: str
) -> Iterator[OddField]:
    """Yield a field that is an instance of none of the given classes."""
    value = value_of(owner, name)
    if not isinstance(value, kinds):
        yield OddField(name, described(value), expected)


def described(value: object) -> str:
    """Describe a field's value in a word: its type."""
    return "missing" if value is _MISSING else type(value).__name__


def _none(node: Node) -> Iterable[OddField]:
    del node
    return ()


def _odd_fields(node: Node) -> Iterator[OddField]:
    """Yield the odd fields of any node; each check relies on those before it."""
    yield from is_odd(node, "topological_nr", int, "an integer")
    if node.topological_nr < 0:
        yield OddField("topological_nr", str(node.topological_nr), "0 or more")
    yield from is_odd(node, "sequence_nr", int, "an integer")
    yield from is_odd(node, "next_edges", (tuple, list), "a tuple of edges")
    for index, edge in enumerate(node.next_edges):
        yield from _under(f"next_edges[{index}]", _odd_in_edge(edge))
    yield from is_odd(
        node, "input_metadata", (tuple, list), "a tuple of InputMetadata or None"
    )
    for index, metadata in enumerate(node.input_metadata):
        if metadata is not None:
            yield from _under(f"input_metadata[{index}]", _odd_in_metadata(metadata))
    yield from is_odd(node, "runs_on", Device, "a Device")
    yield from is_odd(node, "forward_stream", (Stream, type(None)), "a Stream or None")
    yield from is_odd(node, "module_path", str, "a str")
    yield from is_odd(node, "hooks", (NodeHooks, type(None)), "NodeHooks or None")
    if node.hooks is not None:
        yield from _under("hooks", _odd_in_hooks(node.hooks))


def _under(name: str, found: Iterable[OddField]) -> Iterator[OddField]:
    """Yield odd fields, prefixed with the field that leads to their owner."""
    for odd in found:
        yield odd._replace(name=f"{name}.{odd.name}" if odd.name else name)


def _odd_in_edge(edge: object) -> Iterator[OddField]:
    if not isinstance(edge, Edge):
        yield OddField("", described(edge), "an Edge to a node or to None")
        return
    yield from is_odd(edge, "node", (Node, type(None)), "a Node or None")
    yield from is_odd(edge, "input_nr", int, "an integer")
    metadata = getattr(edge.node, "input_metadata", None)
    if isinstance(metadata, tuple | list) and not 0 <= edge.input_nr < len(metadata):
        expected = f"the number of one of its {len(metadata)} inputs"
        yield OddField("input_nr", str(edge.input_nr), expected)


def _odd_in_metadata(metadata: object) -> Iterator[OddField]:
    if not isinstance(metadata, InputMetadata):
        yield OddField("", described(metadata), "InputMetadata or None")
        return
    yield from is_odd(metadata, "shape", tuple, "a tuple of integers")
    yield from is_odd(metadata, "device", Device, "a Device")


def _odd_in_hooks(hooks: NodeHooks) -> Iterator[OddField]:
    yield from is_odd(hooks, "retains_grad", dict, "a dict of hooks by input_nr")
    for name in ("pre", "post"):
        yield from is_odd(hooks, name, tuple, "a tuple of hooks")
        for index, hook in enumerate(getattr(hooks, name)):
            if not callable(hook):
                yield OddField(f"{name}[{index}]", described(hook), "a function")
    tensor_hooks = value_of(hooks, "of_tensors")
    for name in ("pre", "post_accumulate"):
        yield from _under(
            "of_tensors", is_odd(tensor_hooks, name, tuple, "a tuple of hooks")
        )


#: Class of nodes -> function that yields the odd ones among the fields that the class
#: adds. Each module fills in its own classes at import.
ODD_FIELDS: Final[dict[type, Callable[[Any], Iterable[OddField]]]] = {Node: _odd_fields}

#: Class of nodes -> function that names the field that must have caused an error where
#: each field by itself looks fine. Filled like `ODD_FIELDS`.
UNUSABLE_FIELDS: Final[dict[type, Callable[[Any, Exception], OddField | None]]] = {}


def _error(node: Node, odd: OddField, error: BaseException) -> TypeError:
    found = odd_field_error(node, *odd)
    found.__cause__ = error
    return found
