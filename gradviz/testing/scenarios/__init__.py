"""Small programs that use an engine in every way in which its threads can meet.

Each runs threads in a `World` and notes what is wrong there; as an entry of `SCENARIOS`
it is a function of a `Scheduler`, ready for `explore`. All numbers are integers, so
that sums are exact in any order.
"""

from gradviz.testing.scenarios import (
    callbacks,
    ending,
    errors,
    interruptions,
    nesting,
    passes,
    streams,
)
from gradviz.testing.scenarios.program import SCENARIOS

__all__ = [
    "SCENARIOS",
    "callbacks",
    "ending",
    "errors",
    "interruptions",
    "nesting",
    "passes",
    "streams",
]
