cimport cython
from gradviz.backends.reports cimport UsersLine, users_line

cpdef now_ns()

cdef class Work:
    cdef public StreamQueue queue
    cdef public object name, run, size, frame, error, launched_ns, ended_ns
    cdef public Work before
    cdef public long kernel
    cdef public bint is_awaited, is_poison, is_done
    cdef public list waiters
    cdef UsersLine _launched_at
    cpdef finish(self)

@cython.locals(work=Work)
cpdef Work new_work(StreamQueue queue, name=*, run=*, Work before=*, bint is_awaited=*, bint is_poison=*)

cdef class StreamQueue:
    cdef public object device, stream_id, text, ended_ns, lane
    cdef public bint is_used
    cdef public Work tail
    cpdef put(self, Work work)
    cpdef add(self, Work work)
