"""Traces as the files of other tools: one module a format, each with its `parts`.

`parts` gives the bytes of a file piece by piece, so that a long trace is never in
memory a second time.
"""
