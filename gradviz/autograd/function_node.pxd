from gradviz.engine.graph.node cimport begin
from gradviz.ops.variables.variable cimport Variable, as_flowing, as_tensor, gradient_edge
