cimport cython

cdef Py_ssize_t _LEAF

cdef class PendingGraph:
    cdef public set _defined
    cdef public dict _leaves
    cdef public object _nodes, _queues, _known_queues
    cdef object _strings, _defines_again, _made_at
    cdef object _shared, _inputs, _num_inputs, _new_inputs
    @cython.locals(defined=set, leaves=dict, definition=tuple)
    cpdef define_nodes(self, nodes, made_at=*)

cdef tuple _expected(metadata)
cdef tuple _all_expected(tuple inputs)
