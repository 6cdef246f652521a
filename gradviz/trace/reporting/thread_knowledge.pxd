from libc.stdint cimport uint64_t

# Imported as `threading` by modules that ask for no more of it.
cdef extern from "pythread.h":
    unsigned long get_ident "PyThread_get_thread_ident"()

cdef class Knowledge:
    cdef public uint64_t ident

cdef class MeetingPlace:
    cdef public object key
    cdef public Knowledge left_version, taken_version
    cdef dict _first
    cdef bint _is_shared
    cpdef leave(self)
    cpdef take(self)
