cimport cython

cdef class Operands:
    cdef readonly list arrays, args
    cdef readonly object kwargs
    cdef readonly tuple key

@cython.locals(given=Operands)
cpdef Operands operands(function, tuple args, kwargs)
@cython.locals(inner=list)
cdef _taken(value, list arrays, list key)
@cython.locals(inner=list)
cdef _key(value, kind)
