"""Where arrays live and work is done: one interface, one module a backend."""
