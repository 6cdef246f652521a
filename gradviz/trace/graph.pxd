cdef list _edges(node)
cdef tuple _expected(metadata)
cdef tuple _all_expected(tuple inputs)
