cimport cython

cdef class PendingGraph:
    cdef public dict _defined
    cdef public object _nodes, _queues, _known_queues
    cdef object _strings, _defines_again, _made_at
    cdef object _shared, _inputs, _num_inputs, _new_inputs
    @cython.locals(defined=dict)
    cpdef define_nodes(self, nodes, made_at=*)

cdef tuple _expected(metadata)
cdef tuple _all_expected(tuple inputs)
