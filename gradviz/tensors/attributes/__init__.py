"""Attributes of tensors: dtype, layout and size, and the options that choose them.

In: names, NumPy's dtypes and lengths. Out: `DType`, `Size` and checked `Options`. Read
`dtypes`, `size`, `layout`, `creation_options`; then `limits`.
"""
