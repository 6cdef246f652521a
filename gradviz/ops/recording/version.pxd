cdef class Version:
    cdef public object value
