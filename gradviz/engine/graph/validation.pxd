cimport cython
from gradviz.engine.graph.node cimport Edge, InputMetadata, Node

@cython.locals(edge=Edge, node=Node, metadata=InputMetadata, index=Py_ssize_t)
cpdef validate_outputs(edges, gradients, function=*)
cdef _conform(gradient, InputMetadata metadata, index, function)
cdef _cast(gradient, InputMetadata metadata, function)
