cimport cython
from gradviz.engine.node cimport Edge, Node

@cython.locals(node=Node, edge=Edge, next_node=Node, counts=dict, stack=list)
cpdef compute_dependencies(Node root, min_topological_nr)
