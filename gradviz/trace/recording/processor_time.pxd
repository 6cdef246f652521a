from libc.stdint cimport int64_t

cdef class ThreadTime:
    cdef object _clock
    cdef list _outer
    cdef int64_t _last_ns, _lost_ns, _ran_ns
    cdef public int64_t began, due, short
    cpdef start(self, int64_t now)
    cpdef end(self, int64_t now)
    cpdef read(self, int64_t now)
    cdef int64_t _lost_before(self)
