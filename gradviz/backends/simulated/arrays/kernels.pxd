cimport cython
from gradviz.backends.simulated.devices.layouts cimport ArrayLayout, layout_of
from gradviz.backends.simulated.devices.machine cimport SimulatedDevice
from gradviz.backends.simulated.devices.memory cimport Allocation, Allocator
from gradviz.backends.simulated.devices.work cimport StreamQueue, Work, new_work

@cython.locals(work=Work)
cpdef Work launch(StreamQueue queue, name, run, reads, writes, reads_from=*, writes_to=*, is_awaited=*)
@cython.locals(allocation=Allocation, memory=Allocator)
cpdef SimulatedDevice ready(arrays)
@cython.locals(allocation=Allocation)
cpdef new_array(kind, SimulatedDevice device, StreamQueue queue, name, ArrayLayout layout)
