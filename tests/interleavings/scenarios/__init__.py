"""Small programs that use an engine in every way in which its threads can meet.

Each runs threads in a `World` and notes what is wrong there; decorated it is a function
of a `Scheduler`, ready for `explore`, and an entry of `SCENARIOS`. All numbers are
integers, so that sums are exact in any order.
"""

from tests.interleavings.scenarios import (
    callbacks,
    ending,
    errors,
    interruptions,
    nesting,
    passes,
    streams,
)
from tests.interleavings.scenarios.program import SCENARIOS

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
