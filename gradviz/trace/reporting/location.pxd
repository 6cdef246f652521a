cdef _frame_of(frame, dict owners, Py_ssize_t least)
