cimport cython
from gradviz.backends.simulated.devices.layouts cimport ArrayLayout
from gradviz.backends.simulated.devices.work cimport StreamQueue, Work, new_work

cdef class MemoryBlock:
    cdef public object memory, size, address, poisons

cdef class Allocation:
    cdef public object id, poison, used_by
    cdef public MemoryBlock block
    cdef public StreamQueue queue
    cdef readonly object _freed

cdef class Allocator:
    cdef public object freed
    cdef object _device, _wait, _free, _held_back, _allocated, _peak, _reserved, _limit
    @cython.locals(allocation=Allocation, block=MemoryBlock)
    cpdef Allocation allocate(self, StreamQueue queue, ArrayLayout layout, kernel)
    @cython.locals(allocation=Allocation)
    cpdef collect(self)
    @cython.locals(queue=StreamQueue)
    cdef _free_one(self, Allocation allocation)
    @cython.locals(block=MemoryBlock, queue=StreamQueue)
    cdef _give_back(self, Allocation allocation)
