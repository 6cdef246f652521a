"""One recording, told anew with other texts."""

from pathlib import Path

import pytest

from tests.hostile.traces import tell_anew


@pytest.fixture(scope="session")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A recording, and the same with other texts; see `tell_anew`."""
    return tell_anew(tmp_path_factory.mktemp("hostile"))
