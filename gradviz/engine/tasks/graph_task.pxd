from gradviz.engine.graph.node cimport Node
from gradviz.engine.tasks.outcome cimport Outcome
from gradviz.trace.node_reports cimport NodeReports

cdef class GraphTask:
    cdef object __weakref__
    cdef public bint goes_short, is_private
    cdef public Py_ssize_t outstanding_tasks
    cdef public dict dependencies, not_ready
    cdef public NodeReports home_reports
    cdef public Outcome outcome
    cdef public object baton, captured_gradients, context, cpu_ready_queue, create_graph
    cdef public object devices, exec_info, home, id, keep_graph, mutex, outputs, owner
    cdef public object parent, priority, probe, reentrant_depth, roots, seen_change
    cdef public object streams, uses_device_threads
    cpdef finish_one(self)

cdef class NodeTask:
    cdef public GraphTask graph_task
    cdef public Node node
    cdef public object inputs, priority
