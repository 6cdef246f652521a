from gradviz.ops.conventions.dimensions cimport at, wrap_dim
from gradviz.ops.variables.variable cimport raw
