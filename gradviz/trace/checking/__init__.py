"""The lifecycle: the legal order of events in a trace.

In: a `Trace`. Out: each event that no rule allows. Read `lifecycle`; `textbook` passes
over what is as usual.
"""
