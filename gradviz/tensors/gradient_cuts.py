"""Operations that take values out of the graph, reported to whoever listens."""

from typing import Final

from gradviz.ops.variables.variable import Variable
from gradviz.trace import probe
from gradviz.trace.reporting.location import Locations

_lines: Final[Locations[str]] = Locations(lambda text: text)


def report_cut(tensor: Variable, operation: str) -> None:
    """Report an operation whose result has no gradient, if `tensor` has one."""
    listener = probe.current
    if listener is not None and tensor.needs_grad:
        listener.gradient_cut(operation, _lines.of_caller())
