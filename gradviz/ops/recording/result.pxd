cimport cython
from gradviz.ops.recording.op_node cimport OpNode
from gradviz.ops.recording.plan cimport Plan
from gradviz.ops.recording.variable cimport Variable, gradient_edge, variable

cpdef tuple edges_of(args, positions)
@cython.locals(result=Variable, kept=Variable)
cpdef recorded(node_class, Plan plan, edges, data, values)
@cython.locals(kept=Variable)
cpdef kept_result(data, needs_grad=*)
