"""PyTorch's graph, read without disturbing it: nodes, parameters, modules.

In: tensors and modules of PyTorch. Out: `SeenNode`s: numbers and texts. Read
`seen_node`, `graph_reader`, `module_calls`, `owners`.
"""
