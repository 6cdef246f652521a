"""Utilities for many parameters at once, under PyTorch's names.

In: parameters of a model, or a batch of sequences. Out: the same, clipped, joined,
packed or parametrized. Read `rnn` and `weight_norm`.
"""

from gradviz.nn.gradients import clip_grad_norm_, clip_grad_value_, get_total_norm
from gradviz.nn.parameter import parameters_to_vector, vector_to_parameters
from gradviz.nn.utils import rnn
from gradviz.nn.utils.weight_norm import remove_weight_norm, weight_norm

__all__ = [
    "clip_grad_norm_",
    "clip_grad_value_",
    "get_total_norm",
    "parameters_to_vector",
    "remove_weight_norm",
    "rnn",
    "vector_to_parameters",
    "weight_norm",
]
