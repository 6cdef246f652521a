"""Timelines: a lane for each thread and each stream, with its spans.

In: the tables. Out: lanes of spans, from which pictures and viewers are made. Read
`timeline_spans`, `idle_spans`, `timeline_lanes`, `module_rows`.
"""
