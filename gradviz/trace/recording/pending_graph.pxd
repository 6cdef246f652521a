cimport cython
from libc.stdint cimport int64_t

cdef Py_ssize_t _LEAF, _NO_EDGES, _NUMBER

cdef class PendingGraph:
    cdef public set _older
    cdef public list _recent
    cdef public dict _leaves
    cdef public object _chunks, _queues, _known_queues
    cdef public int64_t _newest
    cdef readonly object models
    cdef object _strings, _defines_again
    cdef object _shared, _inputs, _num_inputs, _new_inputs
    @cython.locals(chunk=list, is_new=bint, begin=Py_ssize_t, size=Py_ssize_t, enough=Py_ssize_t, number=int64_t, newest=int64_t)
    cpdef define_nodes(self, nodes, made_at=*)
    @cython.locals(recent=list, begin=Py_ssize_t, size=Py_ssize_t, place=int64_t, latest=int64_t)
    cdef _keep(self, list chunk, made_at, int64_t newest)
    cdef _list_recent(self)
    cdef bint _is_defined(self, list chunk, Py_ssize_t begin) except -1

cdef tuple _expected(metadata)
cdef tuple _all_expected(tuple inputs)
