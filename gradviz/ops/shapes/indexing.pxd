from gradviz.ops.conventions.dimensions cimport wrap_dim
from gradviz.ops.variables.variable cimport raw

cdef _selected(x, dim, index, position)
