"""Addresses: how people say which node of a pass they mean.

``27`` is its id; ``MulBackward0`` and ``MulBackward0:3`` are by name, counted in the
order in which the nodes of that name ran, from 0; ``model.py:12`` is the line that made
it, ``Net.layers.0`` the part of a model, and ``Net.layers.0.weight``, or its end
``0.weight``, a parameter whose gradient it adds up. An address has to mean one node.
"""

import contextlib
import difflib
from collections.abc import Callable
from typing import Final, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from gradviz.analysis.executions import (
    MAX_NAMES,
    MAX_TEXT,
    definition,
    execution_columns,
)
from gradviz.analysis.messages import companions, messages
from gradviz.errors import UserError
from gradviz.trace.model import NodeDefinition, Trace
from gradviz.trace.strings import shortened
from gradviz.trace.table import Column

_Called: TypeAlias = Literal["name", "module", "location", "parameter"]
_CALLED: Final[tuple[_Called, ...]] = get_args(_Called)

#: So many candidates are named where an address means several nodes, or none.
MAX_NAMED: Final = 5

#: Of more nodes than this an address by name, line or module takes the first.
MAX_NODES: Final = 200_000

#: With so many texts one that nothing is called is compared.
MAX_COMPARED: Final = 2_000

_MAX_TEXT: Final = 200

#: Kinds of events by which a pass has to do with a node.
_TELLING: Final = ("node_started", "task_pushed", "gradient_buffered", "capture_taken")


class NoSuchNodeError(UserError):
    """An address means no node of a pass, or several: wrong usage."""

    exit_code = 2


class SeveralNodesError(NoSuchNodeError):
    """An address means several nodes of a pass, or not one of these."""


def nodes_of(trace: Trace, task: int) -> list[int]:
    """The nodes of a pass: those that ran, in that order, then those that did not."""
    ran = execution_columns(trace, [task]).node.tolist()
    known = dict.fromkeys(ran)
    for kind in _TELLING:
        table = trace.columns[kind]
        mine = table["node"][table.narrow("task") == task]
        known.update(dict.fromkeys(mine[mine >= 0].tolist()))
    ids = np.array([*known], np.int64)
    if np.isin(trace.nodes.edges(ids).consumer, np.append(ids, -1)).all():
        return list(known)  # the usual case, in a hundredth of the time
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
    return AddressBook(trace, task).find(address)


def find_node_of_workers(trace: Trace, task: int, address: str) -> tuple[int, int]:
    """The node that an address means, and the pass that it is of.

    That is `task`, or else one that another worker ran for it. The id of a send or a
    receive that no gradients reached is of `task`, whose context it is in.

    Raises:
        NoSuchNodeError: It means none, or several; the text names some.
    """
    try:
        return task, find_node(trace, task, address)
    except SeveralNodesError:
        raise
    except NoSuchNodeError:
        every = messages(trace)
        tasks = companions(every, [task])
        found = []
        for other in sorted(tasks - {task}):
            with contextlib.suppress(NoSuchNodeError):
                found.append((other, find_node(trace, other, address)))
        if len(found) == 1:
            return found[0]
        if found:
            listed = ", ".join(f"{node} of pass {one}" for one, node in found)
            raise SeveralNodesError(
                f"{shortened(address.strip(), _MAX_TEXT)!r} means {len(found):,} nodes "
                f"of workers: {shortened(listed, MAX_TEXT)}"
            ) from None
        contexts = {one.context for one in every if {one.task, one.to_task} & tasks}
        ends = {
            node
            for one in every
            if one.pass_id < 0 and one.context in contexts
            for node in (one.node, one.to_node)
        }
        for node in ends - {-1}:
            if str(node) == address.strip():
                return task, node
        raise


class AddressBook:
    """The nodes of a pass, by all that they are called: for who looks for several.

    Args:
        trace: The trace.
        task: The pass.
    """

    def __init__(self, trace: Trace, task: int) -> None:
        self._trace = trace
        self._task = task
        self._nodes = np.array(nodes_of(trace, task), np.int64)
        self._texts = {of: self._called(of) for of in _CALLED}

    def find(self, address: str) -> int:
        """The node that an address means.

        Raises:
            NoSuchNodeError: It means none, or several; the text names some.
        """
        nodes, text = self._nodes, address.strip()
        if text.isascii() and text.isdecimal() and len(text) < 20:
            if (nodes == int(text)).any():
                return int(text)
            raise NoSuchNodeError(
                f"pass {self._task} has no node {text}; it has {len(nodes):,}"
                + (f", from {nodes.min()} to {nodes.max()}" if len(nodes) else "")
            )
        name, colon, number = text.rpartition(":")
        if colon and name and number.isascii() and number.isdecimal():
            by_name = nodes[self._where("name", lambda one: _is_called(one, name))]
            place = int(number[:19])
            if place < len(by_name):
                return int(by_name[place])
            if len(by_name):
                raise SeveralNodesError(
                    f"pass {self._task} has {len(by_name):,} nodes called {name!r}, "
                    f"from {name}:0 to {name}:{len(by_name) - 1}: there is no "
                    f"{shortened(text, _MAX_TEXT)!r}"
                )
        is_called = self._where("name", lambda one: _is_called(one, text))
        is_meant = (
            is_called
            | self._where("module", lambda one: one == text)
            | self._where("location", lambda one: _is_line(one, text))
            | self._where("parameter", lambda one: _is_parameter(one, text))
        )
        found = np.flatnonzero(is_meant) if text else np.empty(0, np.int64)
        if len(found) == 1:
            return int(nodes[found[0]])
        if not len(found):
            raise NoSuchNodeError(self._unknown(text))
        raise SeveralNodesError(self._ambiguous(text, found, is_called))

    def _called(self, of: _Called) -> tuple[list[str], Column]:
        """What the nodes are called: each text once, and of each node which it has."""
        texts, which = self._trace.nodes.names(self._nodes, of)
        if of != "name":
            texts = ["" if one == "?" else one for one in texts]  # it is lost
        if of != "parameter":
            texts = [shortened(one, MAX_TEXT) for one in texts]
        return texts, which

    def _where(
        self, of: _Called, is_meant: Callable[[str], bool]
    ) -> npt.NDArray[np.bool_]:
        """Which nodes have a text that is meant."""
        texts, which = self._texts[of]
        found = np.array([is_meant(one) for one in texts], np.bool_)
        return found[which] if len(texts) else np.zeros(len(which), np.bool_)

    def _unknown(self, text: str) -> str:
        names, modules, lines, parameters = (self._texts[of][0] for of in _CALLED)
        leaves = [name for one in parameters for name in _parameters(one)]
        texts = dict.fromkeys(
            (
                *(part for one in names for part in (_short(one), one)),
                *modules,
                *leaves,
                *(name.partition(".")[2] for name in leaves),
                *(one.rpartition("/")[2] for one in lines),
            )
        )
        some = [one for one in texts if one][:MAX_COMPARED]
        close = difflib.get_close_matches(text, some, MAX_NAMED)
        said = f"pass {self._task} has no node {shortened(text, _MAX_TEXT)!r}"
        if not close:
            return (
                f"{said}; a node is an id, a name as MulBackward0:2, a line, a module "
                f"or a parameter"
            )
        meant = " or ".join(repr(shortened(one, _MAX_TEXT)) for one in close)
        return f"{said}. Did you mean {meant}?"

    def _ambiguous(
        self, text: str, found: Column, is_called: npt.NDArray[np.bool_]
    ) -> str:
        _, which = self._texts["name"]
        if is_called[found].all() and (which[found] == which[found[0]]).all():
            named = [f"{text}:{place}" for place in range(min(len(found), MAX_NAMED))]
        else:
            few = self._nodes[found[:MAX_NAMED]].tolist()
            named = [f"{one} {_told(definition(self._trace, one))}" for one in few]
        more = len(found) - MAX_NAMED
        rest = f" and {more:,} more" if more > 0 else ""
        meant = f"{shortened(text, _MAX_TEXT)!r} means {len(found):,} nodes"
        return f"{meant} of pass {self._task}: {', '.join(named)}{rest}"


def _is_called(name: str, text: str) -> bool:
    """Whether that is a node's name, with or without ``Backward0``."""
    return text in {name, _short(name)}


def _short(name: str) -> str:
    return name.partition("Backward")[0]


def _is_line(location: str, text: str) -> bool:
    return location == text or (":" in text and location.endswith(f"/{text}"))


def _is_parameter(names: str, text: str) -> bool:
    return any(f".{one}".endswith(f".{text}") for one in _parameters(names))


def _parameters(names: str) -> list[str]:
    """The names of a parameter, of which there are several where models share it."""
    some = names.split("\n")[:MAX_NAMES]
    return [shortened(one, MAX_TEXT) for one in some if one]


def _told(node: NodeDefinition) -> str:
    """Its name, or the parameter that tells it from others of the same."""
    return shortened(node.parameters[0] if node.parameters else node.name, _MAX_TEXT)
