"""The graph of a pass, and simpler graphs of the same pass.

In: the definitions of nodes. Out: graphs of few enough boxes to be drawn. Read
`backward_graph`, `forward_order`, `simplification`, `modules`, `repetition`,
`overview`.
"""
