"""Accesses to memory that no stream orders.

In: what streams and threads did, as events. Out: races, and waits that nothing needed.
Read `stream_clocks`, `memory_accesses`, `happens_before`, `stream_order`.
"""
