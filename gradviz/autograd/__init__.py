"""Differentiation, under PyTorch's names.

In: tensors, functions of tensors, and custom functions. Out: gradients, Jacobians and
Hessians. Read `gradient`, `function`, `function_node`, then a public name of PyTorch:
`grad_mode`, `graph`, `functional`, `gradcheck`.
"""

from gradviz.autograd import function, functional, graph
from gradviz.autograd.anomaly_mode import (
    detect_anomaly,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    set_detect_anomaly,
)
from gradviz.autograd.function import Function
from gradviz.autograd.grad_mode import (
    _force_original_view_tracking as _force_original_view_tracking,
)
from gradviz.autograd.grad_mode import (
    _unsafe_preserve_version_counter as _unsafe_preserve_version_counter,
)
from gradviz.autograd.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference,
    is_inference_mode_enabled,
    is_view_replay_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from gradviz.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck
from gradviz.autograd.gradient import grad
from gradviz.autograd.saved_tensors import SavedTensor
from gradviz.autograd.variable import Variable
from gradviz.engine.graph.grad_mode import is_multithreading_enabled
from gradviz.tensors.backward import backward

__all__ = [
    "Function",
    "GradcheckError",
    "SavedTensor",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "function",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "is_grad_enabled",
    "is_inference",
    "is_inference_mode_enabled",
    "is_multithreading_enabled",
    "is_view_replay_enabled",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
]
