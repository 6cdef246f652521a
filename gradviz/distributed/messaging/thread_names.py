"""Names of the threads of a worker."""


def thread_name(worker: int, what: str) -> str:
    """Return the name of a worker's thread, with its purpose.

    Several workers may be in one process, and merged traces use these names, too.
    """
    return f"worker {worker} / {what}"
