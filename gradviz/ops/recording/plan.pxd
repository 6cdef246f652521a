cdef class Plan:
    cdef readonly object keep, origins, only, turns, joint
    cdef readonly tuple steps, names
    cdef readonly bint has_tensors, saves_results
