from gradviz.ops.recording.result cimport kept_result, recorded, result_of
from gradviz.ops.recording.variable cimport gradient_edge, variable
