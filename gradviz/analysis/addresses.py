"""Addresses: how people say which node of a pass they mean.

``27`` is its id; ``MulBackward0`` and ``MulBackward0:3`` are by name, counted in the
order in which the nodes of that name ran, from 0; ``model.py:12`` is the line that made
it, ``Net.layers.0`` the part of a model, and ``Net.layers.0.weight``, or its end
``0.weight``, a parameter whose gradient it adds up. An address has to mean one node.
"""

import difflib
from collections.abc import Iterable, Sequence
from typing import Final

from gradviz.analysis.executions import definition, execution_columns
from gradviz.errors import UserError
from gradviz.trace.model import NodeDefinition, Trace
from gradviz.trace.strings import shortened

#: So many candidates are named where an address means several nodes, or none.
MAX_NAMED: Final = 5

#: Of more nodes than this an address by name, line or module takes the first.
MAX_NODES: Final = 200_000

_MAX_TEXT: Final = 200

#: Kinds of events by which a pass has to do with a node.
_TELLING: Final = ("node_started", "task_pushed", "gradient_buffered", "capture_taken")


class NoSuchNodeError(UserError):
    """An address means no node of a pass, or several: wrong usage."""

    exit_code = 2


def nodes_of(trace: Trace, task: int) -> list[int]:
    """The nodes of a pass: those that ran, in that order, then those that did not."""
    ran = execution_columns(trace, [task]).node.tolist()
    known = dict.fromkeys(ran)
    for kind in _TELLING:
        table = trace.columns[kind]
        mine = table["node"][table.narrow("task") == task]
        known.update(dict.fromkeys(mine[mine >= 0].tolist()))
    waiting = list(known)
    while waiting and len(known) < MAX_NODES:
        node = trace.nodes.get(waiting.pop())
        after = () if node is None else (to for to, _ in node.edges if to >= 0)
        new = [one for one in after if one not in known]
        known.update(dict.fromkeys(new))
        waiting += new
    return list(known)


def find_node(trace: Trace, task: int, address: str) -> int:
    """The node of a pass that an address means; see above.

    Raises:
        NoSuchNodeError: It means none, or several; the text names some.
    """
    nodes = nodes_of(trace, task)
    text = address.strip()
    if text.isascii() and text.isdecimal() and len(text) < 20:
        if int(text) in set(nodes):
            return int(text)
        raise NoSuchNodeError(
            f"pass {task} has no node {text}; it has {len(nodes):,}"
            + (f", from {min(nodes)} to {max(nodes)}" if nodes else "")
        )
    known = [definition(trace, node) for node in nodes]
    name, colon, number = text.rpartition(":")
    by_name = [one.id for one in known if name and _is_called(one, name)]
    if colon and number.isascii() and number.isdecimal() and by_name:
        place = int(number[:19])
        if place < len(by_name):
            return by_name[place]
        raise NoSuchNodeError(
            f"pass {task} has {len(by_name):,} nodes called {name!r}, from {name}:0 to "
            f"{name}:{len(by_name) - 1}: there is no {shortened(text, _MAX_TEXT)!r}"
        )
    found = [one for one in known if text and _is_meant(one, text)]
    if len(found) == 1:
        return found[0].id
    if not found:
        raise NoSuchNodeError(_unknown(task, text, known))
    raise NoSuchNodeError(_ambiguous(task, text, found))


def _is_called(node: NodeDefinition, name: str) -> bool:
    """Whether that is its name, with or without ``Backward0``."""
    return name in {node.name, _short(node)}


def _short(node: NodeDefinition) -> str:
    return node.name.partition("Backward")[0]


def _is_meant(node: NodeDefinition, text: str) -> bool:
    is_line = ":" in text and node.location.endswith(f"/{text}")
    is_parameter = any(f".{one}".endswith(f".{text}") for one in node.parameters)
    return (
        is_line
        or is_parameter
        or _is_called(node, text)
        or text in {node.module, node.location}
    )


def _unknown(task: int, text: str, known: Sequence[NodeDefinition]) -> str:
    texts = dict.fromkeys(
        part
        for one in known
        for part in (
            _short(one),
            one.name,
            one.module,
            *one.parameters,
            *(name.partition(".")[2] for name in one.parameters),
            one.location.rpartition("/")[2],
        )
        if part
    )
    close = difflib.get_close_matches(text, list(texts)[:10_000], MAX_NAMED)
    said = f"pass {task} has no node {shortened(text, _MAX_TEXT)!r}"
    if not close:
        return (
            f"{said}; a node is an id, a name as MulBackward0:2, a line, a module or a "
            f"parameter"
        )
    meant = " or ".join(repr(shortened(one, _MAX_TEXT)) for one in close)
    return f"{said}. Did you mean {meant}?"


def _ambiguous(task: int, text: str, found: Sequence[NodeDefinition]) -> str:
    if all(_is_called(one, text) and one.name == found[0].name for one in found):
        named: Iterable[str] = (f"{text}:{place}" for place in range(len(found)))
    else:
        named = (f"{one.id} {_told(one)}" for one in found)
    few = ", ".join(name for name, _ in zip(named, range(MAX_NAMED), strict=False))
    more = len(found) - MAX_NAMED
    rest = f" and {more:,} more" if more > 0 else ""
    meant = f"{shortened(text, _MAX_TEXT)!r} means {len(found):,} nodes"
    return f"{meant} of pass {task}: {few}{rest}"


def _told(node: NodeDefinition) -> str:
    """Its name, or the parameter that tells it from others of the same."""
    return shortened(node.parameters[0] if node.parameters else node.name, _MAX_TEXT)
