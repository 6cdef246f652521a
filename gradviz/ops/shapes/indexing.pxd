cdef _selected(x, dim, index, position)
