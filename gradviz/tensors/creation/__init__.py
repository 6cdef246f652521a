"""New tensors: of data, of constants, of random numbers.

In: data, or a size, and options. Out: a `Tensor`, or the ``out=`` that was filled. Read
`factories`, `from_data`, `random`, `out_variants`; then `old_types`.
"""
