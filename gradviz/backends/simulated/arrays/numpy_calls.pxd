cimport cython
from gradviz.backends.simulated.arrays.inference cimport form_of
from gradviz.backends.simulated.arrays.kernels cimport launch, new_array, ready
from gradviz.backends.simulated.devices.machine cimport SimulatedDevice
from gradviz.backends.simulated.arrays.operands cimport Operands, operands
from gradviz.backends.simulated.devices.work cimport StreamQueue

cdef class _CallInto:
    cdef object function, kwargs, place
    cdef list args

@cython.locals(call=_CallInto)
cdef _CallInto _call_into(Operands given, place)
@cython.locals(given=Operands, device=SimulatedDevice, queue=StreamQueue)
cpdef call(function, name, tuple args, kwargs, bint takes_out=*, bint may_view=*)
