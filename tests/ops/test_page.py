"""The page about ops says what the table of cases says."""

from tests.ops.cases import page


def test_the_page_is_current():
    written = page.PAGE.read_text(encoding="utf-8")

    assert written == page.text(), "run: python -m tests.ops.cases.page"
