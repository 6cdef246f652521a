"""The plugin of pytest: ``pytest --gradviz`` records the tests' backward passes.

``pytest --gradviz-update`` rewrites the files that `assert_same_backward` compares
with. pytest loads this module in every run, so it only defines its options; the
recorder is loaded on request.
"""

import importlib
import os

import pytest

#: The default folder of the recordings.
FOLDER = "gradviz-traces"

#: The variable that passes the option to `assert_same_backward`, also in processes that
#: tests start.
UPDATE = "GRADVIZ_UPDATE"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Define the options."""
    group = parser.getgroup("gradviz")
    group.addoption(
        "--gradviz",
        action="store_true",
        help="record the backward passes of each test, and fail it if its recording "
        "cannot be: events out of place, or streams that do not wait for each other",
    )
    group.addoption(
        "--gradviz-dir",
        default=FOLDER,
        metavar="DIR",
        help=f"where the recordings go, a file for each test with a backward pass "
        f"(default: {FOLDER})",
    )
    group.addoption(
        "--gradviz-update",
        action="store_true",
        help="write anew the golden files of gradviz.testing.assert_same_backward",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Load the recorder."""
    if config.getoption("gradviz"):
        recorded = importlib.import_module("gradviz.capture.recorded_tests")
        plugin = recorded.RecordedTests(config)
        config.pluginmanager.register(plugin, "gradviz-recorded-tests")
    if config.getoption("gradviz_update"):
        before = os.environ.get(UPDATE)
        os.environ[UPDATE] = "1"
        config.add_cleanup(lambda: _restore(before))


def _restore(before: str | None) -> None:
    if before is None:
        os.environ.pop(UPDATE, None)
    else:
        os.environ[UPDATE] = before
