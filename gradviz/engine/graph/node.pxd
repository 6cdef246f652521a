cimport cython
from gradviz.trace.node_reports cimport NodeReports

@cython.freelist(1024)
cdef class Edge:
    cdef public Node node
    cdef public object input_nr

@cython.locals(edge=Edge)
cpdef Edge edge_to(Node node, input_nr)

@cython.freelist(1024)
cdef class InputMetadata:
    cdef public object shape, dtype, device

@cython.locals(metadata=InputMetadata)
cpdef InputMetadata metadata_for(shape, dtype, device)

cdef class Node:
    cdef object __weakref__
    cdef public object id, sequence_nr, topological_nr, next_edges, input_metadata
    cdef public object runs_on, forward_stream, module_path, hooks, _metadata
    cpdef call(self, inputs)
    cpdef release_variables(self)
    @cython.locals(edge=Edge, after=Node)
    cpdef trace_definition(self, list chunk)
    @cython.locals(edge=Edge, after=Node, edges=list)
    cdef _add_definition(self, list chunk, leaf_names)
    cdef _traced_name(self)

cpdef begin(Node node, next_edges, input_metadata, device, sequence_nr)
@cython.locals(edge=Edge, after=Node)
cpdef fill_in(Node node, next_edges, input_metadata, device, sequence_nr)
@cython.locals(reports=NodeReports)
cpdef announce(Node node, saved_bytes=*)
