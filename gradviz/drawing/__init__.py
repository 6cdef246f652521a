"""Pictures for programs and notebooks: `gv.draw`.

In: tensors, a recording or a trace. Out: a picture that notebooks show and files keep.
Read `tensor_graph`, `picture`.
"""
