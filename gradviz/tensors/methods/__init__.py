"""The methods of a Tensor that are ops: one class a family, mixed into it.

Most methods are the ops themselves, set as attributes: what they do is said where they
are defined, in `gradviz.ops`.
"""
