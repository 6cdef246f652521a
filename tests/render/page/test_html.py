import base64
import hashlib
import re

from gradviz.render.page.html import write_page


def test_program_and_style_are_what_the_policy_names() -> None:
    page = write_page(b"data", "a title").decode()

    policy = re.search(r'Policy" content="([^"]*)"', page)
    parts = dict(one.split(" ", 1) for one in policy[1].split("; "))
    for tag, rule in (("script", "script-src"), ("style", "style-src")):
        (text,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert parts[rule] == f"'sha256-{digest}'"
    assert (parts["default-src"], parts["connect-src"]) == ("'none'", "'none'")


def test_a_page_loads_nothing_from_elsewhere() -> None:
    page = write_page(b"", "a title").decode()

    markup = re.sub(r"<(script|style)>.*?</\1>", "", page, flags=re.DOTALL)
    assert not re.search(r"https?:|//|\bsrc=|\bhref=|\bon\w+=", markup)
    assert not re.search(r"url\((?!#)", page)  # but what is in a picture itself
    assert "@import" not in page


def test_a_title_is_text() -> None:
    page = write_page(b"", "</title><script>alert(1)</script>").decode()

    assert "<title>&lt;/title&gt;&lt;script&gt;alert(1)" in page


def test_the_data_stand_in_the_page_as_text() -> None:
    page = write_page(b"\x1f\x8bdata", "a title").decode()

    (found,) = re.findall(r'<script id="data" type="application/gzip">(.*?)</', page)
    assert base64.b64decode(found) == b"\x1f\x8bdata"
