from gradviz.ops.conventions.silence cimport quietly
from gradviz.ops.variables.variable cimport raw

cpdef multiplied(x, y)
cpdef gradient_of_left(grad, y, x_columnwise)
cpdef gradient_of_right(grad, x, y_columnwise)
cpdef adjoint(x)
