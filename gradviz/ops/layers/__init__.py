"""Ops of neural networks: convolutions, pooling, normalization, losses.

In: batches of inputs, and weights. Out: outputs of layers, and losses. Read `linear`,
`convolution` and `loss`, then any.
"""
