cdef class ReadyQueue:
    cdef public object device, has_no_mail, id, pop_own, push, push_own, seen
    cdef object _mailbox, _make_schedule
