"""Traces: what producers report, how it is kept, and how it is read back."""
