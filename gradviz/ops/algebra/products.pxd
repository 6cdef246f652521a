from gradviz.ops.recording.silence cimport quietly
from gradviz.ops.recording.variable cimport raw

cpdef multiplied(x, y)
cpdef gradient_of_left(grad, y, x_columnwise)
cpdef gradient_of_right(grad, x, y_columnwise)
cpdef adjoint(x)
