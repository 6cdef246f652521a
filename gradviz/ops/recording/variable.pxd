cimport cython
from gradviz.engine.node cimport Edge, Node, metadata_for

cdef class Variable:
    cdef object __weakref__
    cdef public bint needs_grad
    cdef public object array, version, viewed
    cdef public Edge edge
    cdef public object _accumulator, _grad, _grad_dtype, _hooks

    @cython.locals(node=Node)
    cpdef accumulator(self)

cdef _references_to_accumulator(Variable leaf)

cdef class LeafEdge(Edge):
    cdef public object leaf

@cython.locals(new=Variable)
cpdef variable(array, Edge edge=*)
@cython.locals(source=Variable, node=Node, edge=LeafEdge)
cpdef gradient_edge(value)
