"""One recording, told three times."""

from pathlib import Path

import pytest

from tests.hostile.traces import tell_thrice


@pytest.fixture(scope="session")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A recording, and the same with texts that are hostile, benign and empty."""
    return tell_thrice(tmp_path_factory.mktemp("hostile"))
