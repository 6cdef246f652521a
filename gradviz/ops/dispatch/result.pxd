cimport cython
from gradviz.engine.graph.node cimport Edge, edge_to
from gradviz.ops.dispatch.op_node cimport OpNode
from gradviz.ops.dispatch.plan cimport Plan
from gradviz.ops.variables.variable cimport Variable, gradient_edge, variable

cdef class Recipe:
    cdef readonly type node_class
    cdef readonly object plans, positions, properties
    cdef readonly Plan only_plan

cpdef tuple edges_of(args, positions)
@cython.locals(plan=Plan)
cpdef result_of(Recipe recipe, args, arrays, data)
@cython.locals(plan=Plan)
cpdef result_of_one(Recipe recipe, Variable input, tuple rest, data)
@cython.locals(node=OpNode, kept=Variable, result=Variable)
cpdef recorded(type node_class, Plan plan, edges, data, values)
@cython.locals(kept=Variable)
cpdef kept_result(data, needs_grad=*)
