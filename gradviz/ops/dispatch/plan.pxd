cimport cython
from gradviz.ops.variables.variable cimport Variable

cdef class Plan:
    cdef readonly object origins, only, turns, joint, together
    cdef readonly tuple kept, steps, names
    cdef readonly bint has_tensors, saves_results
    @cython.locals(kept=tuple, tensor=Variable)
    cpdef tuple keep(self, values)
