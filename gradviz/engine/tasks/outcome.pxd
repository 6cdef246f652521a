cdef class Outcome:
    cdef public object deadline_ns, error, final_callbacks, has_error, helpers
    cdef public object is_complete, is_done, is_ended, is_told, is_torn, mutex, probe
    cdef public object quiet, task_id
