cimport cython
from gradviz.engine.tasks.graph_task cimport GraphTask, NodeTask
from gradviz.engine.graph.node cimport Node
from gradviz.engine.tasks.ready_queue cimport ReadyQueue
from gradviz.trace.node_reports cimport NodeReports

cdef class Worker:
    cdef object __weakref__
    cdef public bint are_outer_unrestricted, has_count, in_user_code, is_interrupted
    cdef public ReadyQueue ready_queue
    cdef public object calls, current_depth, graph_task, node, queues, sync
    cdef public object thread_id, thread_name, total_depth, worker_device
    cpdef push(self, GraphTask graph_task, NodeReports reports, Node node, inputs, Node producer)
    @cython.locals(task=NodeTask, queue=ReadyQueue)
    cpdef push_own(self, GraphTask graph_task, Node node, inputs)
    @cython.locals(reports=NodeReports)
    cpdef NodeReports reports(self, GraphTask graph_task)

cdef _report_push(NodeReports reports, GraphTask graph_task, Node node, ReadyQueue queue, length, Node producer)
