"""Pictures of timelines.

In: timelines of `analysis`. Out: SVG, and the words that the terminal shares. Read
`timeline_scene`, `timeline_lanes`, `timeline_svg`.
"""
