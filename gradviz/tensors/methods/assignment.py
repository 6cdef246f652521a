"""Methods that write to the elements of the tensor."""

from gradviz.ops import assignment
from gradviz.ops.variable import Value, Variable


class Assignment(Variable):
    """Assignment to all elements, or to some.

    Most methods are functions of `gradviz.ops.assignment`, where they are described.
    """

    __slots__ = ()

    copy_ = assignment.copy_
    fill_ = assignment.fill_
    zero_ = assignment.zero_

    def __setitem__(self, index: Value, value: Value) -> None:
        assignment.setitem(self, index, value)
