cdef class PyTorchSchedule:
    cdef readonly list heap
    cpdef push(self, task)
    cpdef pop(self)
    cpdef peek(self)
    cdef _sift_up(self, Py_ssize_t hole, task)
