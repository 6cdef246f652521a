from gradviz.ops.recording.promotion cimport number_beside, operand, promote
from gradviz.ops.recording.result cimport Recipe, kept_result, result_of, result_of_one
from gradviz.ops.recording.variable cimport Variable, gradient_edge, is_inference, raw, variable
from gradviz.ops.recording.view cimport record_view
from gradviz.ops.recording.silence cimport quietly

cdef tuple _promoted(forward, a, b, word)
cdef _computed(forward, arrays, word)
