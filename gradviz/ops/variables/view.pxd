cimport cython
from gradviz.ops.variables.variable cimport Variable
from gradviz.ops.variables.version cimport Version

cdef class View:
    cdef public Variable base
    cdef public object steps, tracked, creation
    cdef public Py_ssize_t version

@cython.locals(view=View, version=Version)
cpdef record_view(Variable source, Variable result, step)
