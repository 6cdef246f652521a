cimport cython
from gradviz.engine.graph_task cimport GraphTask
from gradviz.engine.node cimport Edge, Node
from gradviz.engine.protocols cimport size_bytes
from gradviz.engine.ready_queue cimport ReadyQueue
from gradviz.engine.worker cimport Worker
from gradviz.trace.node_reports cimport NodeReports

@cython.locals(edge=Edge, receiver=Node, reports=NodeReports, dependencies=dict, goes_short=bint, in_one=bint, index=Py_ssize_t, num_inputs=Py_ssize_t)
cpdef hand_on(Worker worker, GraphTask graph_task, Node node, outputs, num_bytes)
cdef _arrive_or_add(Worker worker, GraphTask graph_task, Node producer, Edge edge, gradient)
cpdef arrive(Worker worker, GraphTask graph_task, Node producer, Edge edge, gradient, how, ready=*)
@cython.locals(receiver=Node, reports=NodeReports, not_ready=dict)
cdef _arrive(Worker worker, GraphTask graph_task, Node producer, Edge edge, gradient, how, ready)
@cython.locals(edge=Edge)
cdef bint _has_one_to_hand_on(Node node, outputs)
@cython.locals(receiver=Node, queue=ReadyQueue, reports=NodeReports)
cdef _report_passed_on(Worker worker, GraphTask graph_task, Node producer, Edge edge, gradient, num_bytes)
@cython.locals(receiver=Node, queue=ReadyQueue, reports=NodeReports)
cdef _report_ready(Worker worker, GraphTask graph_task, Node producer, Edge edge, gradient)
