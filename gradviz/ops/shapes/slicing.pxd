from gradviz.ops.recording.dimensions cimport at, wrap_dim
from gradviz.ops.recording.variable cimport raw
