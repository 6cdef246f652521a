from gradviz.ops.conventions.promotion cimport number_beside, operand, promote
from gradviz.ops.dispatch.result cimport Recipe, kept_result, result_of, result_of_one
from gradviz.ops.variables.variable cimport Variable, gradient_edge, is_inference, raw, variable
from gradviz.ops.variables.view cimport record_view
from gradviz.ops.conventions.silence cimport quietly

cdef tuple _promoted(forward, a, b, word)
cdef _computed(forward, arrays, word)
