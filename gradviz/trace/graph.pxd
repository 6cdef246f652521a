cdef tuple _definition(node, number, sequence_nr, leaf)
cdef tuple _expected(metadata)
cdef tuple _all_expected(tuple inputs)
