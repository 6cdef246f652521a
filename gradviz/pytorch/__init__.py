"""PyTorch's own backward passes, recorded as those of gradviz's engine are.

What is private to PyTorch is used in this package only, and looked up in `names` once.
"""
