cimport cython

cdef class Variable:
    cdef object __weakref__
    cdef public object array, edge, needs_grad, version, viewed
    cdef public object _accumulator, _grad, _grad_dtype, _hooks

cdef _references_to_accumulator(Variable leaf)
@cython.locals(new=Variable)
cpdef variable(array, edge=*)
cpdef gradient_edge(value)
