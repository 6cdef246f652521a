from gradviz.engine.node cimport begin
from gradviz.ops.recording.variable cimport Variable, as_flowing, as_tensor, gradient_edge
