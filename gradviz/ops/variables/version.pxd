cdef class Version:
    cdef public Py_ssize_t value
    cdef public tuple changes
