from gradviz.engine.node cimport Node

cdef class Hookable(Node):
    pass
