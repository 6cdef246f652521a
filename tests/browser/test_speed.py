"""Times to open, pan and play a page of many events in the browser.

A busy machine makes all of it slow: so what is asserted is a generous ratio to what a
page of few events takes in the same browser. What it took is printed.
"""

import sys

import pytest

from benchmarks.pages import measure, write_report

pytestmark = pytest.mark.stress


def test_a_page_of_100_000_events_opens_pans_and_plays(window, tmp_path, capsys):
    few, many = tmp_path / "few.html", tmp_path / "many.html"
    write_report(few, num_layers=10)
    assert write_report(many, num_layers=3_200) > 100_000

    measure(window.driver, few)  # whatever a browser does only once
    small, large = measure(window.driver, few), measure(window.driver, many)
    with capsys.disabled():
        sys.stdout.write(f"\nfew: {small}\nmany: {large}\n")
    assert large.opened_ms < 20 * small.opened_ms + 2_000
    for short, long in zip(small[1:], large[1:], strict=True):
        assert long[0] < 5 * short[0] + 17
