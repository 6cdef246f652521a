"""Error that ended a recorded program, explained by what came before it."""

from collections.abc import Iterator

from gradviz.analysis.moments.pass_failures import explain_failure, kind_of
from gradviz.capture.session import Recording
from gradviz.errors import UserError
from gradviz.render.words.failure_text import failure_sentences
from gradviz.trace.reading.reader import load_trace


def causes(recording: Recording) -> Iterator[str]:
    """Yield what the trace tells of the error that ended the program.

    Args:
        recording: The recording, which has been closed.
    """
    text, path = recording.error_text, recording.path
    if not text or path is None or not path.exists():
        return
    if kind_of(text) is None:
        return
    try:
        trace = load_trace(path)
        failed = trace.columns["task_failed"]["task"].tolist()
        found = explain_failure(trace, failed[-1]) if failed else None
    except UserError:
        return
    if found is not None:
        yield from failure_sentences(found)
