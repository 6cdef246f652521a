"""Odd values without number: none may end the process.

``FULL=1`` tries each of them.
"""

import pytest

from tests.campaigns import IS_FULL
from tests.faults.programs import run_campaign

pytestmark = pytest.mark.stress

#: Each program makes one trial of so many.
_STEP = 400
_PROGRAMS = range(400) if IS_FULL else range(0, 400, 50)


@pytest.mark.parametrize("first", _PROGRAMS)
@pytest.mark.parametrize("what", ["fields", "calls"])
def test_odd_values_end_in_errors(what: str, first: int):
    report = run_campaign("odd_values", what, first, _STEP)

    assert report["failures"] == []
    assert report["num_trials"] > 30
