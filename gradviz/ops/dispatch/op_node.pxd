cimport cython
from gradviz.engine.graph.node cimport Node
from gradviz.engine.graph.node cimport announce, fill_in, metadata_for
from gradviz.ops.variables.node_hooks cimport Hookable
from gradviz.ops.dispatch.plan cimport Plan
from gradviz.ops.variables.saved_memory cimport count_saved
from gradviz.ops.variables.variable cimport Variable

cdef class OpNode(Hookable):
    cdef public Plan plan
    cdef public object saved
    cdef record(self, edges, data, Plan plan, saved)
    @cython.locals(kept=Variable, plan=Plan, steps=tuple, saved=tuple)
    cpdef call(self, inputs)
    cdef _announce(self, tuple saved)
    cpdef release_variables(self)
    @cython.locals(kept=Variable)
    cdef tuple _arrays(self, tuple saved)
    cdef _array(self, value, index)
    cdef tuple _each(self, grad, tuple saved)

cdef class SeveralNode(OpNode):
    cdef public object fills, takes_one
