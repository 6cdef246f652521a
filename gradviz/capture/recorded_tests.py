"""Recording the tests of ``pytest --gradviz``, one file for each, and judging them.

A recording goes from the first fixture of a test to the end of the test itself. What is
to be told of it travels in the test's report, so that it is the same whether tests run
in this process or in others.
"""

import re
import zlib
from collections.abc import Generator
from typing import Final

import pytest

from gradviz.analysis.findings.check import Check, check_trace
from gradviz.capture.session import Recording, record
from gradviz.errors import UserError
from gradviz.render.words.text import count

#: A test tells so much of what is wrong; ``gradviz check`` tells all.
_TOLD: Final = 10
_LONGEST_NAME: Final = 150

#: Facts that reports are asked for: the number of passes in a recording, its soundness,
#: and the reason why it has none of PyTorch's.
_PASSES: Final = "gradviz_passes"
_UNSOUND: Final = "gradviz_unsound"
_PROBLEM: Final = "gradviz_problem"

_Wrapper = Generator[None, object, object]


class RecordedTests:
    """Records each test that runs in this process, and counts all that are reported.

    Raises:
        pytest.UsageError: The folder cannot be made.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._folder = config.invocation_params.dir / config.getoption("gradviz_dir")
        self._open: Recording | None = None
        self._passes = self._tests = self._unsound = 0
        self._problem = ""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise pytest.UsageError(
                f"--gradviz-dir: cannot make {self._folder}: {error.strerror}"
            ) from None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> _Wrapper:
        """Begin the recording before the first fixture."""
        try:
            path = self._folder / file_name(item.nodeid)
            self._open = record(path, force=True, source="torch if imported")
        except UserError as error:
            pytest.fail(f"--gradviz: {error}", pytrace=False)
        try:
            return (yield)
        except BaseException:  # there will be no call
            self._end(item)
            raise

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> _Wrapper:
        """End the recording with the test; a recording that cannot be fails it."""
        try:
            result = yield
        except BaseException:
            if wrong := self._end(item):
                item.add_report_section("call", "gradviz", wrong)
            raise
        if wrong := self._end(item):
            pytest.fail(wrong, pytrace=False)
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count the report of a test, from any process."""
        said = dict(report.user_properties)
        if report.when == "teardown" and _PASSES in said:
            self._tests += 1
            self._passes += int(str(said[_PASSES]))
            self._unsound += bool(said[_UNSOUND])
        self._problem = self._problem or str(said.get(_PROBLEM, ""))

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> None:
        """Report the recordings in one line."""
        terminalreporter.write_line(
            f"gradviz: recorded {count(self._passes, 'backward pass')} of "
            f"{count(self._tests, 'test')} in {self._folder}, "
            f"{self._unsound:,} unsound",
            red=self._unsound > 0,
        )
        if self._problem:
            terminalreporter.write_line(f"gradviz: {self._problem}", red=True)

    def _end(self, item: pytest.Item) -> str:
        """Close the recording, keep it unless it is empty; return its violations."""
        recording, self._open = self._open, None
        if recording is None:
            return ""
        recording.close()
        if recording.problem:
            item.user_properties.append((_PROBLEM, recording.problem))
        assert recording.path is not None
        check = check_trace(recording.trace)
        if check.is_empty:
            recording.path.unlink(missing_ok=True)
            return ""
        wrong = _wrong(check)
        item.user_properties += [
            (_PASSES, check.num_passes),
            (_UNSOUND, bool(wrong)),
        ]
        if not wrong:
            return ""
        head = f"the recording of this test is unsound (gradviz check {recording.path})"
        return "\n".join([f"{head}:", *wrong])


def file_name(test: str) -> str:
    """Return the file name of a test's recording; no two tests share one."""
    plain = test.replace("/", ".").replace("::", ".")
    name = re.sub(r"[^\w.-]+", "_", plain, flags=re.ASCII)[-_LONGEST_NAME:]
    unique = "" if name == plain else f"-{zlib.crc32(test.encode()):08x}"
    return f"{name}{unique}.gvt"


def _wrong(check: Check) -> list[str]:
    """Return the violations in a recording; failed passes, as tests want, are none."""
    events = [f"- {one}" for one in check.violations]
    races = [f"- {race}" for race, _ in check.streams.races]
    wrong = [*races, *events]
    if check.losses.dropped:
        wrong.append(f"- {check.losses.dropped:,} events were dropped")
    more = len(wrong) - _TOLD
    return [*wrong[:_TOLD], *([f"- and {more:,} more"] if more > 0 else [])]
