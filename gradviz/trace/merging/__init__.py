"""Traces of several processes made one.

In: several traces. Out: one file on one clock, with numbers that do not clash. Read
`placement`, `compared_clocks`, `common_clock`, `merged_file`.
"""
