cdef list _edges(node)
cdef tuple _expected(metadata)
