cimport cython
from gradviz.engine.tasks.graph_task cimport GraphTask, NodeTask
from gradviz.engine.graph.node cimport Node
from gradviz.engine.tasks.ready_queue cimport ReadyQueue
from gradviz.engine.threads.worker cimport Worker
from gradviz.ready_order cimport PyTorchSchedule
from gradviz.trace.node_reports cimport NodeReports
from gradviz.engine.threads.evaluation cimport evaluate_function

@cython.locals(queue=ReadyQueue, plain=PyTorchSchedule, task=NodeTask, popped=GraphTask)
cpdef thread_main(Worker worker, GraphTask graph_task)
@cython.locals(reports=NodeReports)
cpdef _evaluate(Worker worker, GraphTask graph_task, ReadyQueue queue, Node node, inputs)
