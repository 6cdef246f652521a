"""Methods that write to the elements of the tensor."""

from gradviz.ops.recording.variable import Value, Variable
from gradviz.ops.shapes import assignment


class Assignment(Variable):
    """Assignment to all elements, or to some.

    Most methods are functions of `gradviz.ops.shapes.assignment`, described there.
    """

    __slots__ = ()

    copy_ = assignment.copy_
    fill_ = assignment.fill_
    zero_ = assignment.zero_

    def __setitem__(self, index: Value, value: Value) -> None:
        assignment.setitem(self, index, value)
