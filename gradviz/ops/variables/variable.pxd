cimport cython
from gradviz.engine.graph cimport basic_nodes
from gradviz.engine.graph.input_buffer cimport owns_its_memory
from gradviz.engine.graph.node cimport Edge, Node, metadata_for
from gradviz.ops.variables.version cimport Version

cdef class Variable:
    cdef object __weakref__
    cdef public bint needs_grad
    cdef public object array, viewed
    cdef public Version version
    cdef public Edge edge
    cdef public object _accumulator, _grad, _grad_dtype, _hooks

    @cython.locals(node=Node)
    cpdef accumulator(self)

cdef _references_to_accumulator(Variable leaf)

cdef class LeafEdge(Edge):
    cdef public object leaf

@cython.locals(new=Variable)
cpdef variable(array, Edge edge=*)
@cython.locals(tensor=Variable)
cpdef raw(value)
cpdef as_tensor(gradient)
cpdef as_flowing(gradient)
cdef class AccumulateGrad(basic_nodes.AccumulateGrad):
    @cython.locals(tensor=Variable)
    cpdef stored(self, leaf)
    @cython.locals(tensor=Variable)
    cpdef store(self, leaf, gradient)
    cpdef wrapped(self, gradient)
    @cython.locals(tensor=Variable)
    cpdef may_keep(self, leaf, gradient)

@cython.locals(source=Variable, node=AccumulateGrad, edge=LeafEdge)
cpdef gradient_edge(value)
cpdef bint is_inference(Variable variable)
