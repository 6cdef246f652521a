cimport cython
from libc.stdint cimport uint64_t
# `threading.get_ident` is a function of C there.
from gradviz.trace.reporting cimport thread_knowledge as threading
from gradviz.trace.reporting.thread_knowledge cimport MeetingPlace

cdef object _put, _get

cdef class LockMethods(MeetingPlace):
    cdef object __weakref__, _acquire, _acquiring, _release

@cython.locals(place=MeetingPlace)
cpdef put(self, item, block=*, timeout=*)
@cython.locals(place=MeetingPlace, ident=uint64_t)
cpdef get(self, block=*, timeout=*)
