"""Ops that make fewer elements of many, and what needs them."""
