from gradviz.ready_order cimport PyTorchSchedule

cdef class ReadyQueue:
    cdef public PyTorchSchedule plain
    cdef public object device, has_no_mail, id, pop_own, push, push_own, seen
    cdef object _mailbox, _make_schedule
