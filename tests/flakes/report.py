"""One run of the suite: the number of tests that passed, and those that did not."""

from pathlib import Path
from typing import Final, NamedTuple
from xml.etree import ElementTree as ET

#: Exit codes of a run that came to its end: all passed, some failed.
ENDED: Final = (0, 1)


class Report(NamedTuple):
    """The outcome of a run.

    Attributes:
        num_passed: Tests that passed or were skipped.
        failed: Names of tests with a failure or an error, each once, or one line on
            the run itself where it did not come to its end.
    """

    num_passed: int
    failed: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.num_passed:,} passed, {len(self.failed)} failed"


def read_report(results: Path, code: int) -> Report:
    """Read pytest's JUnit file.

    Args:
        results: The file; it is missing where pytest died.
        code: pytest's exit code.
    """
    if code not in ENDED or not results.exists():
        return Report(0, (f"the run itself: pytest exited with {code}",))
    failed: dict[str, None] = {}
    num_passed = 0
    for case in ET.parse(results).iter("testcase"):
        if any(child.tag in {"failure", "error"} for child in case):
            failed[f"{case.get('classname')}::{case.get('name')}"] = None
        else:
            num_passed += 1
    if code and not failed:
        return Report(num_passed, ("the run itself: failed outside of any test",))
    return Report(num_passed, tuple(failed))
