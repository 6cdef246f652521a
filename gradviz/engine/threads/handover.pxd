cimport cython
from gradviz.engine.tasks.graph_task cimport GraphTask
from gradviz.engine.graph.node cimport Edge, Node
from gradviz.engine.graph.protocols cimport size_bytes
from gradviz.engine.tasks.ready_queue cimport ReadyQueue
from gradviz.engine.threads.worker cimport Worker
from gradviz.trace.node_reports cimport NodeReports

@cython.locals(edge=Edge, receiver=Node, in_one=bint, index=Py_ssize_t, num_inputs=Py_ssize_t)
cpdef hand_on(Worker worker, GraphTask graph_task, NodeReports reports, Node node, outputs, num_bytes)
@cython.locals(receiver=Node)
cdef bint _goes_short(GraphTask graph_task, Edge edge)
cdef _arrive_or_add(Worker worker, GraphTask graph_task, NodeReports reports, Node producer, Edge edge, gradient)
cpdef arrive(Worker worker, GraphTask graph_task, NodeReports reports, Node producer, Edge edge, gradient, how, ready=*)
@cython.locals(receiver=Node, not_ready=dict)
cdef _arrive(Worker worker, GraphTask graph_task, NodeReports reports, Node producer, Edge edge, gradient, how, ready)
@cython.locals(receiver=Node, queue=ReadyQueue)
cdef _report_ready(Worker worker, GraphTask graph_task, NodeReports reports, Node producer, Edge edge, gradient, freed_bytes)
