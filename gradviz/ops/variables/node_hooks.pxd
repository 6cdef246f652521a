from gradviz.engine.graph.node cimport Node

cdef class Hookable(Node):
    pass
