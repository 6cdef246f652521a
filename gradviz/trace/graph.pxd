cimport cython
from libc.stdint cimport int64_t

cdef Py_ssize_t _LEAF, _NUM_BEFORE_EDGES

cdef class PendingGraph:
    cdef public set _older
    cdef public list _recent
    cdef public dict _leaves
    cdef public object _nodes, _queues, _known_queues
    cdef public int64_t _newest
    cdef object _strings, _defines_again, _made_at
    cdef object _shared, _inputs, _num_inputs, _new_inputs
    @cython.locals(recent=list, definition=tuple, is_new=bint, place=int64_t, newest=int64_t, latest=int64_t)
    cpdef define_nodes(self, nodes, made_at=*)
    cdef bint _is_defined(self, tuple definition) except -1
    cdef _remember(self, tuple definition)

cdef tuple _expected(metadata)
cdef tuple _all_expected(tuple inputs)
