cdef class Plan:
    cdef readonly object keep, names, origins, only, turns, joint
    cdef readonly tuple steps
    cdef readonly bint has_tensors, saves_results
