"""Tensors: the arrays with gradients that users hold. Arithmetic is in `gradviz.ops`.

In: data, dtypes and devices. Out: a `Tensor`, and backward passes that begin at one.
Read `attributes`, `tensor`, `methods`, `creation`, `backward`.
"""
