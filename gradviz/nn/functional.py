"""Layers and losses as functions: ``gradviz.nn.functional``, PyTorch's names.

What they do is said where they are defined, mostly in `gradviz.ops`.
"""

from gradviz.nn.activation_functions import (
    celu,
    celu_,
    elu,
    elu_,
    hardsigmoid,
    hardswish,
    hardtanh,
    hardtanh_,
    leaky_relu,
    leaky_relu_,
    mish,
    relu,
    relu6,
    relu_,
    rrelu,
    rrelu_,
    selu,
    selu_,
    silu,
    threshold,
    threshold_,
)
from gradviz.ops.elementwise.activation import (
    gelu,
    hardshrink,
    logsigmoid,
    prelu,
    sigmoid,
    softplus,
    softshrink,
    softsign,
    tanhshrink,
)
from gradviz.ops.elementwise.glu import glu
from gradviz.ops.elementwise.trigonometric import tanh
from gradviz.ops.layers.adaptive_pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
)
from gradviz.ops.layers.affine_grids import affine_grid
from gradviz.ops.layers.attention import scaled_dot_product_attention
from gradviz.ops.layers.class_loss import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    nll_loss,
)
from gradviz.ops.layers.class_margin_loss import (
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
)
from gradviz.ops.layers.convolution import (
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
)
from gradviz.ops.layers.distance import (
    cosine_similarity,
    normalize,
    pairwise_distance,
    pdist,
)
from gradviz.ops.layers.dropout import (
    alpha_dropout,
    dropout,
    dropout1d,
    dropout2d,
    dropout3d,
    feature_alpha_dropout,
)
from gradviz.ops.layers.embedding import embedding
from gradviz.ops.layers.embedding_bag import embedding_bag
from gradviz.ops.layers.grid_sampling import grid_sample
from gradviz.ops.layers.gumbel import gumbel_softmax
from gradviz.ops.layers.interpolation import (
    interpolate,
    upsample,
    upsample_bilinear,
    upsample_nearest,
)
from gradviz.ops.layers.linear import bilinear, linear
from gradviz.ops.layers.local_response import local_response_norm
from gradviz.ops.layers.loss import (
    gaussian_nll_loss,
    huber_loss,
    kl_div,
    l1_loss,
    mse_loss,
    poisson_nll_loss,
    smooth_l1_loss,
    soft_margin_loss,
)
from gradviz.ops.layers.margin_loss import (
    cosine_embedding_loss,
    hinge_embedding_loss,
    margin_ranking_loss,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from gradviz.ops.layers.norm_pooling import lp_pool1d, lp_pool2d, lp_pool3d
from gradviz.ops.layers.normalization import (
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    rms_norm,
)
from gradviz.ops.layers.patches import fold, unfold
from gradviz.ops.layers.pooling import (
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    max_pool1d,
    max_pool2d,
    max_pool3d,
)
from gradviz.ops.layers.sequence_loss import ctc_loss
from gradviz.ops.layers.unpooling import max_unpool1d, max_unpool2d, max_unpool3d
from gradviz.ops.reductions.softmax import log_softmax, softmax, softmin
from gradviz.ops.shapes.encoding import one_hot
from gradviz.ops.shapes.padding import pad
from gradviz.ops.shapes.pixel_shuffling import (
    channel_shuffle,
    pixel_shuffle,
    pixel_unshuffle,
)

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "affine_grid",
    "alpha_dropout",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "batch_norm",
    "bilinear",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "celu",
    "celu_",
    "channel_shuffle",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "cosine_embedding_loss",
    "cosine_similarity",
    "cross_entropy",
    "ctc_loss",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "elu",
    "elu_",
    "embedding",
    "embedding_bag",
    "feature_alpha_dropout",
    "fold",
    "gaussian_nll_loss",
    "gelu",
    "glu",
    "grid_sample",
    "group_norm",
    "gumbel_softmax",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "hinge_embedding_loss",
    "huber_loss",
    "instance_norm",
    "interpolate",
    "kl_div",
    "l1_loss",
    "layer_norm",
    "leaky_relu",
    "leaky_relu_",
    "linear",
    "local_response_norm",
    "log_softmax",
    "logsigmoid",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "margin_ranking_loss",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
    "mish",
    "mse_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "nll_loss",
    "normalize",
    "one_hot",
    "pad",
    "pairwise_distance",
    "pdist",
    "pixel_shuffle",
    "pixel_unshuffle",
    "poisson_nll_loss",
    "prelu",
    "relu",
    "relu6",
    "relu_",
    "rms_norm",
    "rrelu",
    "rrelu_",
    "scaled_dot_product_attention",
    "selu",
    "selu_",
    "sigmoid",
    "silu",
    "smooth_l1_loss",
    "soft_margin_loss",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
    "threshold_",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
    "unfold",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]
