"""Arrays as ops see them, whichever library or memory they are of.

In: arrays of NumPy and of backends. Out: arrays that answer NumPy's functions, and
errors where those of two devices meet. Read `mixing`, `wrapped_array`; then
`numpy_functions`, `pinned_array` and `pinning`, of the host's pinned memory.
"""
