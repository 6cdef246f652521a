from gradviz.engine.graph.input_buffer cimport fits, is_sole_reference, is_writeable, owns_its_memory
from gradviz.engine.graph.node cimport Node, begin

cdef class GraphRoot(Node):
    cdef public object gradients

cdef class AccumulateGrad(Node):
    cdef public object _leaf, _mutex
    cpdef trace_definition(self, list chunk)
    cpdef tuple leaf_names(self)
    cpdef accumulate(self, inputs)
    cpdef _update(self, leaf, inputs, others)
    cpdef stored(self, leaf)
    cpdef store(self, leaf, gradient)
    cpdef wrapped(self, gradient)
    cpdef may_increase(self, stored, gradient)
    cpdef increased(self, stored, gradient)
    cpdef may_keep(self, leaf, gradient)
    cpdef copied(self, leaf, gradient)
