"""Conventions of PyTorch that all ops keep: dtypes, dimensions, memory layout, errors.

In: operands, dtypes and dimensions as users write them. Out: those that NumPy computes
with, or PyTorch's error. Read `dtype_names`, `refusal`, `promotion`, then `dimensions`
and `memory_layout`; `silence` keeps warnings away, `generator` draws random numbers.
"""
