cimport cython
from gradviz.engine.node cimport Node

@cython.locals(node=Node, index=Py_ssize_t)
cpdef validate_outputs(edges, gradients, function=*)
