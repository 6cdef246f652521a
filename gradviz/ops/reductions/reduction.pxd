cpdef total(x, dims, keepdim, dtype)
