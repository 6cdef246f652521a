cimport cython
from gradviz.engine.graph.node cimport Node
from gradviz.ops.variables.variable cimport Variable

@cython.locals(tensor=Variable)
cpdef tuple count_saved(Node node, tuple saved)

@cython.locals(whole=Variable)
cdef bint _is_of_leaf(Variable kept)
cdef _owner_of(array)
