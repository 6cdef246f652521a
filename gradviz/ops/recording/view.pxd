cimport cython
from gradviz.ops.recording.variable cimport Variable

cdef class View:
    cdef public object base, steps, tracked, creation, version

@cython.locals(view=View)
cpdef view_of(Variable source, Variable result, step)
