"""Places for the boxes of a graph, and ways for its edges, in linear time.

In: boxes with sizes, and edges. Out: coordinates. Read `layers`, `layer_order`,
`coordinates`, `routing`, `placed_graph`.
"""
