"""Backends of other packages, found by an entry point of the group `GROUP`.

The entry point is called as the type of device is, and points to what is called without
arguments to make the backend: its class will do. It is loaded when a program first asks
for such a device, so that a broken one harms nobody else.
"""

from typing import Final

from gradviz.backends.protocols import Backend

#: Of the entry points, as in ``[project.entry-points."gradviz.backends"]``.
GROUP: Final = "gradviz.backends"


def third_party_types() -> frozenset[str]:
    """The types of device that installed packages have backends for."""
    from importlib import metadata  # noqa: PLC0415 - 20 ms that hardly any program needs

    return frozenset(point.name for point in metadata.entry_points(group=GROUP))


def load_backend(type: str) -> Backend | None:  # noqa: A002 - as Device has it
    """The backend for a type of device, None if no package has one.

    Raises:
        RuntimeError: A package has, but it could not be loaded.
    """
    from importlib import metadata  # noqa: PLC0415 - 20 ms that hardly any program needs

    for point in metadata.entry_points(group=GROUP, name=type):
        package = point.dist.name if point.dist else "an unknown package"
        where = f"the backend of {type!r} devices from {package} ({point.value})"
        try:
            backend = point.load()()
        except Exception as error:
            raise RuntimeError(
                f"{where} could not be loaded: {error.__class__.__name__}: {error}"
            ) from error
        if not isinstance(backend, Backend) or backend.type != type:
            got = getattr(backend, "type", None)
            raise RuntimeError(
                f"{where} is no backend of that type: got "
                f"{backend.__class__.__name__} of type {got!r}, expected what "
                f"gradviz.backends.protocols.Backend lists, of type {type!r}"
            )
        return backend
    return None
