cimport cython
from gradviz.engine.graph.node cimport Edge, Node

cpdef compute_dependencies(Node root, min_topological_nr)
@cython.locals(node=Node, edge=Edge, next_node=Node, counts=dict, stack=list)
cdef _count_edges(Node root, min_topological_nr)
