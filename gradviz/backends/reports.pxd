cimport cython

cdef class UsersLine:
    cdef readonly object code, instruction

@cython.locals(line=UsersLine)
cpdef UsersLine users_line()
