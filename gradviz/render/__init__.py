"""Pictures and text from what `gradviz.analysis` found.

Everything drawn from a trace is data: it is escaped for the format it is written in,
and nothing in it can add elements, load files or move a terminal's cursor.
"""
