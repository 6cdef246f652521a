"""Where arrays live and work is done: one interface, one module a backend."""

from gradviz.backends import cpu, simulated

__all__ = ["cpu", "simulated"]  # imported so that they register themselves
