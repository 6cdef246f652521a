"""Linear algebra: products, factorizations, solutions of linear equations.

In: matrices, and batches of them. Out: variables. Read `products` and `solving`, which
the others use, then any.
"""
