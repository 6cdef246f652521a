from gradviz.ops.recording.dimensions cimport wrap_dim
from gradviz.ops.recording.variable cimport raw

cdef _selected(x, dim, index, position)
