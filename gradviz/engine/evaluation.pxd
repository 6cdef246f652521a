cimport cython
from gradviz.engine.basic_nodes cimport AccumulateGrad
from gradviz.engine.graph_task cimport GraphTask
from gradviz.engine.node cimport Node
from gradviz.engine.protocols cimport sum_of_sizes
from gradviz.engine.worker cimport Worker
from gradviz.engine.handover cimport hand_on
from gradviz.engine.validation cimport validate_outputs
from gradviz.trace.node_reports cimport NodeReports

@cython.locals(goes_short=bint, reports=NodeReports)
cpdef evaluate_function(Worker worker, GraphTask graph_task, Node node, inputs)
@cython.locals(reports=NodeReports)
cpdef call_function(Worker worker, GraphTask graph_task, Node node, inputs)
