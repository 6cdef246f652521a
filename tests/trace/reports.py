"""Reports of each kind of event, made of the signature of their methods."""

import enum
import inspect
from typing import Any

from gradviz.trace.events import KINDS, Event, kind_name, own_columns
from gradviz.trace.probe import Probe

#: Reports that are kept otherwise than they are made.
KEPT_OTHERWISE = {"node_created", "handovers_heard"}


def parameters_of(method: str) -> list[inspect.Parameter]:
    return [*inspect.signature(getattr(Probe, method)).parameters.values()][1:]


def begin_pass(probe: Probe, task: int, **others: Any) -> None:
    """Report that a pass of one root has begun, called by nobody's node.

    Args:
        probe: Is told.
        task: Its GraphTask.
        others: Arguments of `Probe.task_begun` that are not the usual ones.
    """
    usual = {"parent": -1, "reentrant_depth": 0, "owner": -1, "num_roots": 1}
    usual |= {"num_outputs": 0, "keep_graph": False, "create_graph": False}
    probe.task_begun(task, **(usual | others))


def _argument(of: type, number: int) -> Any:
    """A value of this type that no other argument has, if there are so many."""
    if issubclass(of, enum.Enum):
        return [*of][-1]
    return {int: number, bool: True, str: f"text {number}"}[of]


def _arguments(kind: type[Event]) -> dict[str, Any]:
    types = {one.name: one.type for one in own_columns(kind)}
    return {
        parameter.name: _argument(types.get(parameter.name, int), number)
        for number, parameter in enumerate(parameters_of(kind_name(kind)), 3)
    }


#: Of each other kind its method's parameters, and one argument for each.
CALLS: dict[str, dict[str, Any]] = {
    kind_name(kind): _arguments(kind)
    for kind in KINDS.values()
    if kind_name(kind) not in KEPT_OTHERWISE
}
