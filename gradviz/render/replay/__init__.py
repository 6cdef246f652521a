"""A replay in a terminal: as text, event by event, or full screen.

In: the moments of a trace, and keys. Out: lines of text, screens, or an SVG film. Read
`words`, `plain`; then `player`, `panels`, `screen`, `app`.
"""
