"""Ops that move elements and do not compute with them."""
