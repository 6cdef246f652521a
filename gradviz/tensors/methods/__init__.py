"""The methods of a Tensor that are no ops: one class a family, mixed into it.

The others are the ops themselves, each named in `gradviz.ops` where it is defined.

In: a tensor. Out: facts about it, values in Python, other tensors. Read `graph`,
`description`, `conversion`, then any.
"""
