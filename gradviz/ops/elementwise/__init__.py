"""Ops on each element."""
