"""Operations on the bits of integers, and on booleans as bits."""

from typing import Final

import numpy as np

from gradviz.ops.conventions.promotion import Operand, operand, promote
from gradviz.ops.conventions.refusal import check_kinds, check_shapes
from gradviz.ops.dispatch.public import names
from gradviz.ops.variables.variable import Value, Variable, variable


def _on_bits(name: str, function: np.ufunc, *, kinds: str = "biu") -> Value:
    def op(input: Operand, other: Operand) -> Value:
        x = input.array if isinstance(input, Variable) else operand(input)
        y = other.array if isinstance(other, Variable) else operand(other)
        x, y = promote(x, y)
        check_kinds(f"{name}_cpu", kinds, x, y)
        check_shapes(x, y)
        return variable(function(x, y))

    op.__name__ = op.__qualname__ = name
    op.__doc__ = f"``numpy.{function.__name__}``."
    return op


bitwise_and: Final = _on_bits("bitwise_and", np.bitwise_and)
bitwise_or: Final = _on_bits("bitwise_or", np.bitwise_or)
bitwise_xor: Final = _on_bits("bitwise_xor", np.bitwise_xor)
bitwise_left_shift: Final = _on_bits("lshift", np.left_shift, kinds="iu")
bitwise_right_shift: Final = _on_bits("rshift", np.right_shift, kinds="iu")
gcd: Final = _on_bits("gcd", np.gcd, kinds="iu")
lcm: Final = _on_bits("lcm", np.lcm, kinds="iu")


def bitwise_not(input: Value) -> Value:
    """The other bits; of booleans the other one.

    Raises:
        NotImplementedError: The elements are neither.
    """
    array = input.array if isinstance(input, Variable) else input
    check_kinds("bitwise_not_cpu", "biu", array)
    return variable(np.invert(array))


PUBLIC = [
    *names("gv.f(out=) gv.f_ x.f x.f_", gcd, lcm),
    *names("gv.f(out=) x.f x.f_", bitwise_and, bitwise_not, bitwise_or, bitwise_xor),
    *names("gv.f(out=) x.f x.f_", bitwise_left_shift=bitwise_left_shift),
    *names("gv.f(out=) x.f x.f_", bitwise_right_shift=bitwise_right_shift),
]
