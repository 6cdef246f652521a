cpdef wrap_dim(dim, ndim)
cpdef tuple at(dim, index)
