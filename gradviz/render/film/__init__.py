"""Films of backward passes: the graph, the queues and the countdowns, event by event.

In: a replay. Out: an animated SVG; a GIF or an MP4 by `movie`. Read `small_boxes`, then
`filmed_graph`, which places them, `box_states`, which finds the state of each, and
`film_panels`; then `film_markup`, `film_stage`; `film`, the door to all; `movie`.
"""
