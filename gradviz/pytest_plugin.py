"""The plugin of pytest: ``pytest --gradviz`` records what the tests run backward.

pytest loads this module in every run, so it does nothing but name its options; what
records is loaded if it is asked for.
"""

import importlib

import pytest

#: The folder of the recordings, if nobody says which.
FOLDER = "gradviz-traces"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Name the options."""
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


def pytest_configure(config: pytest.Config) -> None:
    """Load what records."""
    if config.getoption("gradviz"):
        recorded = importlib.import_module("gradviz.recorded_tests")
        plugin = recorded.RecordedTests(config)
        config.pluginmanager.register(plugin, "gradviz-recorded-tests")
