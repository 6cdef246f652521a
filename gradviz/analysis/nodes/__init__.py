"""The nodes of a pass: their names, their order, their groups, their waits.

In: the tables, and the address of a node as somebody typed it. Out: nodes in the order
that they ran in, or should have. Read `addresses`, `execution_order`,
`predicted_order`, `processor_waits`.
"""
