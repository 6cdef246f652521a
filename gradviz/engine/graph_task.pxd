from gradviz.engine.node cimport Node
from gradviz.trace.node_reports cimport NodeReports

cdef class GraphTask:
    cdef object __weakref__
    cdef public bint goes_short, is_private
    cdef public Py_ssize_t outstanding_tasks
    cdef public dict dependencies, not_ready
    cdef public NodeReports home_reports
    cdef public object baton, captured_gradients, context, cpu_ready_queue, create_graph
    cdef public object deadline_ns, devices, error, exec_info, final_callbacks, has_error
    cdef public object helpers, home, id, is_complete, is_done, is_ended
    cdef public object is_told, is_torn, keep_graph, mutex, outputs, owner, parent
    cdef public object priority, probe, quiet, reentrant_depth, roots, seen_change
    cdef public object streams, uses_device_threads
    cpdef finish_one(self)

cdef class NodeTask:
    cdef public GraphTask graph_task
    cdef public Node node
    cdef public object inputs, priority
