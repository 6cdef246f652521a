"""A report of each kind of event, made of the signature of its method."""

import enum
import inspect
from typing import Any

from gradviz.trace.events import KINDS, kind_name
from gradviz.trace.probe import Probe

#: Reports that are kept otherwise than they are made.
KEPT_OTHERWISE = {"node_created", "handovers_heard"}


def parameters_of(method: str) -> list[inspect.Parameter]:
    return [*inspect.signature(getattr(Probe, method)).parameters.values()][1:]


def _argument(of: type, number: int) -> Any:
    """A value of this type that no other argument has, if there are so many."""
    if issubclass(of, enum.Enum):
        return [*of][-1]
    return {int: number, bool: True, str: f"text {number}"}[of]


#: Of each other kind its method's parameters, and one argument for each.
CALLS: dict[str, dict[str, Any]] = {
    name: {
        parameter.name: _argument(parameter.annotation, number)
        for number, parameter in enumerate(parameters_of(name), 3)
    }
    for name in map(kind_name, KINDS.values())
    if name not in KEPT_OTHERWISE
}
