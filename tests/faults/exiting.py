"""Programs that end while daemon threads of theirs are in backwards (F14)."""

import textwrap
from pathlib import Path
from typing import Final

from gradviz.trace.checking.lifecycle import judge
from gradviz.trace.reading.reader import load_trace
from tests.faults.programs import HANG_SECONDS

#: What a daemon thread does over and over while the program ends around it.
LOOPS: Final = {
    "on the CPU": "run(engine, Call(nothing, Call(nothing)))",
    "on devices": "run_at(engine, 'device', nothing)",
    "nested in the pool": "run_at(engine, 'pool', nothing)",
    "on devices and in the pool": "Scene(engine).run()",
    "from nodes on devices": """
        run_at(engine, 'device', calling(run_at, engine, 'pool', nothing))
    """,
    "with every error caught": """
        try:
            run_at(engine, 'device', nothing)
        except Exception:
            pass
    """,
}


def looping(*loops: str, at_exit: str, path: Path | None = None) -> str:
    """A program of daemon threads that do something until there is no program.

    Args:
        loops: What each thread does, over and over.
        at_exit: An expression: done at exit when the engine has been stopped.
        path: Record into this file; None records nothing.
    """
    recording = f"record({str(path)!r})" if path else "None"
    functions = "\n".join(map(_function, range(len(loops)), loops))
    names = ", ".join(f"once_{number}" for number in range(len(loops)))
    return f"""
import atexit
from gradviz.capture.session import record
lock = threading.Lock()
atexit.register(lambda: {at_exit})
engine = new_engine()
recording = {recording}
assert_works(engine)
{functions}
def work(once, running):
    while True:
        once()
        running.set()
events, threads = [], []
for once in [{names}]:
    events.append(threading.Event())
    threads.append(threading.Thread(target=work, args=(once, events[-1]), daemon=True))
for thread in threads:
    thread.start()
for event in events:
    assert event.wait({HANG_SECONDS})
"""


def _function(number: int, body: str) -> str:
    body = textwrap.indent(textwrap.dedent(body).strip(), "    ")
    return f"def once_{number}():\n{body}"


def assert_whole(path: Path) -> None:
    """Assert that what such a program recorded is all there, and possible."""
    trace = load_trace(path)
    assert not trace.losses.problems
    assert trace.num_events > 100
    violations = judge(trace).violations
    assert not violations, str(violations[0])
