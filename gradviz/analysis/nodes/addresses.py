"""Addresses: how people say which node of a pass they mean.

``27`` is its id, ``#3`` its number in the execution order; ``MulBackward0`` and
``MulBackward0:3`` are by name, counted in the order in which the nodes of that name
ran, from 0; ``model.py:12`` is the line that made it, ``Net.layers.0`` the part of a
model, and ``Net.layers.0.weight``, or its end ``0.weight``, a parameter whose gradient
it adds up. An address has to mean one node.
"""

import contextlib
import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from gradviz.analysis.nodes.parameters import (
    TELLING,
    UnreachedParameter,
    find_parameters,
    is_called,
    may_be_unlisted,
    names_in,
    unreached,
)
from gradviz.analysis.tables.executions import (
    MAX_TEXT,
    NodeNumbers,
    definition,
    execution_columns,
)
from gradviz.analysis.tables.messages import messages
from gradviz.analysis.tables.worker_parts import with_parts
from gradviz.errors import UserError
from gradviz.trace.format.model import NodeDefinition, Trace
from gradviz.trace.format.strings import CALLED_BY, shortened
from gradviz.trace.format.table import Column

_Called: TypeAlias = Literal["name", "module", "location", "parameter"]
_CALLED: Final[tuple[_Called, ...]] = get_args(_Called)

#: Maximum number of candidates named where an address means several nodes, or none.
MAX_NAMED: Final = 5

#: Of more nodes than this an address by name, line or module takes the first.
MAX_NODES: Final = 200_000

#: With so many texts one that nothing is called is compared.
MAX_COMPARED: Final = 2_000

_MAX_TEXT: Final = 200


class NoSuchNodeError(UserError):
    """An address means no node of a pass, or several: wrong usage."""

    exit_code = 2


class SeveralNodesError(NoSuchNodeError):
    """An address means several nodes of a pass, or not one of these.

    Attributes:
        task: The pass.
        nodes: The nodes that it means, in the order in which they ran; none if it is
            beyond the last of them.
    """

    def __init__(self, text: str, task: int = -1, nodes: Sequence[int] = ()) -> None:
        super().__init__(text)
        self.task = task
        self.nodes = nodes


def nodes_of(trace: Trace, task: int) -> list[int]:
    """The nodes of a pass: those that ran, in that order, then those that did not."""
    ran = execution_columns(trace, [task]).node.tolist()
    known = dict.fromkeys(ran)
    for kind in TELLING:
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
        new = [one for one in after if one not in known and one in trace.nodes]
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
        tasks = with_parts(trace, [task])
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


class UnreachedParameterError(NoSuchNodeError):
    """An address means a parameter that the pass did not reach.

    Attributes:
        parameter: The parameter.
    """

    def __init__(self, parameter: UnreachedParameter) -> None:
        name = shortened(parameter.parameters[0], _MAX_TEXT)
        others = parameter.num_reached_by
        super().__init__(
            f"pass {parameter.task} did not reach parameter {name!r}; {others:,} other "
            f"{'pass' if others == 1 else 'passes'} did"
            if others
            else f"no pass of this trace reached parameter {name!r}"
        )
        self.parameter = parameter


class AddressBook:
    """The nodes of a pass by all their names, for several searches.

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
        if text[:1] == "#" and text[1:].isascii() and text[1:].isdecimal():
            return self._numbered(text)
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
        has_name = self._where("name", lambda one: _is_called(one, text))
        is_meant = (
            has_name
            | self._where("module", lambda one: one == text)
            | self._where("location", lambda one: _is_line(one, text))
            | self._where("parameter", lambda one: is_called(names_in(one), text))
        )
        found = np.flatnonzero(is_meant) if text else np.empty(0, np.int64)
        if len(found) == 1:
            return int(nodes[found[0]])
        if not len(found):
            raise self._unreached(text) or NoSuchNodeError(self._unknown(text))
        told = self._ambiguous(text, found, has_name)
        raise SeveralNodesError(told, self._task, nodes[found].tolist())

    def _numbered(self, text: str) -> int:
        """The node with a number such as ``#3``."""
        numbers = self._numbers()
        for node in self._nodes.tolist():
            if f"#{numbers.get(node)}" == text:
                return int(node)
        raise NoSuchNodeError(
            f"pass {self._task} has no node {shortened(text, _MAX_TEXT)}; it ran "
            f"{len(numbers):,}, from #0"
        )

    def _numbers(self) -> Mapping[int, int]:
        return NodeNumbers(self._trace, [self._task]).of_pass(self._task)

    def _called(self, of: _Called) -> tuple[list[str], Column]:
        """Return the names of the nodes: each text once, and an index per node."""
        texts, which = self._trace.nodes.names(self._nodes, of)
        if of != "name":
            texts = ["" if one == "?" else one for one in texts]  # it is lost
        if of != "parameter":
            texts = [shortened(one, MAX_TEXT) for one in texts]
        return texts, which

    def _where(
        self, of: _Called, is_meant: Callable[[str], bool]
    ) -> npt.NDArray[np.bool_]:
        """Return which nodes have a text that is meant."""
        texts, which = self._texts[of]
        found = np.array([is_meant(one) for one in texts], np.bool_)
        return found[which] if len(texts) else np.zeros(len(which), np.bool_)

    def _unreached(self, text: str) -> NoSuchNodeError | None:
        """An error about a parameter that is meant; None if none is."""
        some = find_parameters(self._trace, text) if text else []
        if not some:
            return None
        if len(some) == 1:
            return UnreachedParameterError(unreached(self._trace, self._task, some[0]))
        names = [repr(shortened(one.names[0], _MAX_TEXT)) for one in some[:MAX_NAMED]]
        more = len(some) - len(names)
        return NoSuchNodeError(
            f"{shortened(text, _MAX_TEXT)!r} means {len(some):,} parameters that pass "
            f"{self._task} did not reach: {', '.join(names)}"
            + (f" and {more:,} more" if more else "")
        )

    def _unknown(self, text: str) -> str:
        names, modules, lines, parameters = (self._texts[of][0] for of in _CALLED)
        models = self._trace.models.values()
        leaves = [
            *(name for one in parameters for name in names_in(one)),
            *(name for some in models for one in some.parameters for name in one.names),
        ]
        texts = dict.fromkeys(
            (
                *(part for one in names for part in (_short(one), one)),
                *modules,
                *leaves,
                *(name.partition(".")[2] for name in leaves),
                *(
                    one.rpartition("/")[2]
                    for location in lines
                    for one in location.split(CALLED_BY)
                ),
            )
        )
        some = [one for one in texts if one][:MAX_COMPARED]
        close = difflib.get_close_matches(text, some, MAX_NAMED)
        said = f"pass {self._task} has no node {shortened(text, _MAX_TEXT)!r}"
        if may_be_unlisted(self._trace, text):
            said += ". If it is a parameter, no pass of this trace reached it"
        if not close:
            return (
                f"{said}; a node is an id, a number as #3, a name as MulBackward0:2, a "
                f"line, a module or a parameter"
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
            numbers = self._numbers()
            named = [
                f"{f'#{numbers[one]}' if one in numbers else one} "
                f"{_node_text(definition(self._trace, one))}"
                for one in few
            ]
        more = len(found) - MAX_NAMED
        rest = f" and {more:,} more" if more > 0 else ""
        meant = f"{shortened(text, _MAX_TEXT)!r} means {len(found):,} nodes"
        return f"{meant} of pass {self._task}: {', '.join(named)}{rest}"


def _is_called(name: str, text: str) -> bool:
    """Return whether a text is a node's name, with or without ``Backward0``."""
    return text in {name, _short(name)}


def _short(name: str) -> str:
    return name.partition("Backward")[0]


def _is_line(location: str, text: str) -> bool:
    if location == text:
        return True
    lines = location.split(CALLED_BY) if ":" in text else ()
    return any(one == text or one.endswith(f"/{text}") for one in lines)


def _node_text(node: NodeDefinition) -> str:
    """Return a node's name, or the parameter that identifies it."""
    return shortened(node.parameters[0] if node.parameters else node.name, _MAX_TEXT)
