"""Charts over time: ready queues and memory.

In: curves of `analysis`. Out: SVG. Read `bars`, `time_chart`, then `queues_svg`,
`memory_svg`.
"""
