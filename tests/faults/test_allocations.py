"""Memory runs out, at any allocation of a pass (F08)."""

import sys

import pytest

from tests.faults.programs import run_campaign

pytest.importorskip("_testcapi", reason="the interpreter cannot be made to fail")


@pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="from then on Python itself crashes of some"
)
@pytest.mark.parametrize("place", ["caller", "device", "pool"])
def test_an_allocation_that_fails_fails_its_pass_and_nothing_else(place: str):
    report = run_campaign("allocations", place, 1, 7)

    assert report["failures"] == []
    assert report["failed"] > 10
