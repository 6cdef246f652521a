"""Where arrays live and work is done: one interface, one module a backend."""

from gradviz.backends import cpu, cuda, simulated

__all__ = ["cpu", "cuda", "simulated"]  # imported so that they register themselves
