cimport cython
from gradviz.ops.recording.variable cimport Variable
from gradviz.ops.recording.version cimport Version

cdef class View:
    cdef public Variable base
    cdef public object steps, tracked, creation
    cdef public Py_ssize_t version

@cython.locals(view=View, version=Version)
cpdef record_view(Variable source, Variable result, step)
