"""What the threads of a worker are called."""


def thread_name(worker: int, what: str) -> str:
    """Of which worker a thread is, and what it does there.

    Several workers may be in one process, and merged traces call threads so, too.
    """
    return f"worker {worker} / {what}"
