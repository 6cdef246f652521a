"""Tensors: what users hold. Their arithmetic is in `gradviz.ops`."""
