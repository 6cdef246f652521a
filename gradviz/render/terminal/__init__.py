"""Views of a trace in a terminal, with rich: tables, and bars of block characters.

In: values of `analysis`. Out: lines of text on a console. Read `cells` and
`row_printer`, which have the parts of all views, then a view, such as `order`, or the
room of those over time, `over_time`.
"""
