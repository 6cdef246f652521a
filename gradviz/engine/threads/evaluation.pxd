cimport cython
from gradviz.engine.graph.basic_nodes cimport AccumulateGrad
from gradviz.engine.tasks.graph_task cimport GraphTask
from gradviz.engine.graph.node cimport Node
from gradviz.engine.graph.protocols cimport sum_of_sizes
from gradviz.engine.threads.worker cimport Worker
from gradviz.engine.threads.handover cimport hand_on
from gradviz.engine.graph.validation cimport validate_outputs
from gradviz.trace.node_reports cimport NodeReports

@cython.locals(goes_short=bint)
cpdef evaluate_function(Worker worker, GraphTask graph_task, NodeReports reports, Node node, inputs)
cpdef call_function(GraphTask graph_task, NodeReports reports, Node node, inputs)
