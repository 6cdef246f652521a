"""Differentiable operations on arrays and on variables, one module a family.

An op takes raw arrays and `Variable` objects alike. Given raw arrays only, it computes
and returns a raw array; given a variable, it records what backward needs. So each
backward formula is written once, in ops, and serves plain gradients and gradients of
gradients.
"""
