from gradviz.ops.recording.result cimport Recipe, kept_result, result_of, result_of_one
from gradviz.ops.recording.variable cimport gradient_edge, variable
