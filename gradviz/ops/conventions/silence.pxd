cpdef quietly(kernel, x, y=*)
