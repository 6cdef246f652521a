cimport cython
from gradviz.ops.recording.variable cimport Variable

cdef class View:
    cdef public Variable base
    cdef public object steps, tracked, creation
    cdef public Py_ssize_t version

@cython.locals(view=View)
cpdef view_of(Variable source, Variable result, step)
