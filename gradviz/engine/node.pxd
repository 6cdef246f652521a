cimport cython

cdef class Node:
    cdef object __weakref__
    cdef public object id, sequence_nr, topological_nr, next_edges, input_metadata
    cdef public object runs_on, forward_stream, module_path, hooks, _metadata
    @cython.locals(node=Node)
    cpdef _initialise(self, next_edges, input_metadata, device, sequence_nr)
    cpdef call(self, inputs)
    cpdef release_variables(self)
