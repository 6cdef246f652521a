cdef class ArrayLayout:
    cdef readonly object shape, dtype, strides, num_bytes, poison

cpdef ArrayLayout layout_of(shape, dtype, strides)
