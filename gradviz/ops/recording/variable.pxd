cimport cython
from gradviz.engine.node cimport Node

cdef class Variable:
    cdef object __weakref__
    cdef public object array, edge, needs_grad, version, viewed
    cdef public object _accumulator, _grad, _grad_dtype, _hooks

    @cython.locals(node=Node)
    cpdef accumulator(self)

cdef _references_to_accumulator(Variable leaf)
@cython.locals(new=Variable)
cpdef variable(array, edge=*)
@cython.locals(source=Variable)
cpdef gradient_edge(value)
