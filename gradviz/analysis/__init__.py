"""What a trace says, as plain values: order, timeline, graph, summary.

Nothing here draws, prints, or knows how a trace was recorded.
"""
