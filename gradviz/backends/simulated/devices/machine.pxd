from gradviz.backends.simulated.devices.memory cimport Allocator
from gradviz.backends.simulated.devices.work cimport StreamQueue

cdef class SimulatedDevice:
    cdef public object device, lost, failures
    cdef public Allocator memory
    cdef object _machine, _first_id, _num_taken
    cdef dict _queues
    cpdef StreamQueue queue(self, stream_id)
    cpdef StreamQueue current_queue(self)
    cpdef check(self)
