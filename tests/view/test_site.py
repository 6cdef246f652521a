"""Answers of a server of traces."""

import gzip
import json
import os
import re
import time
from base64 import b64decode
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

import pytest

from gradviz.trace.reading.reader import parse_trace
from gradviz.view.http import ViewRequest
from gradviz.view.shelf import Shelf, edition_of
from gradviz.view.site import LISTED, Site, choose_passes
from tests.hostile.texts import HOSTILE
from tests.view.conftest import (
    TOKEN,
    Served,
    body,
    header,
    status,
    tell_passes,
    unclosed,
)


@pytest.fixture
def three(tmp_path):
    """A trace of passes 0, 1 and 2."""
    path = tmp_path / "three.gvt"
    path.write_bytes(tell_passes(3))
    return path


def tasks_of(answer: bytes) -> list[int]:
    """The passes that a page shows."""
    found = re.search(rb'type="application/gzip">([^<]*)<', answer)
    plain = gzip.decompress(b64decode(found[1]))
    told = json.loads(plain[4 : 4 + int.from_bytes(plain[:4], "little")])
    return [one["task"] for one in told["header"]["passes"]]


def links(answer: bytes) -> dict[str, str]:
    """Words -> address."""
    found: dict[str, str] = {}

    class Parser(HTMLParser):
        def handle_starttag(self, tag, attrs):
            self.address = dict(attrs).get("href") if tag == "a" else None

        def handle_data(self, data):
            if self.address:
                found[data] = self.address
            self.address = None

    parser = Parser()
    parser.address = None
    parser.feed(body(answer).decode())
    return found


# --- one trace --------------------------------------------------------------------


def test_the_address_leads_to_the_page_of_the_last_pass(show, three):
    served = show(three)

    for target in (f"/?token={TOKEN}", "/", "/trace/three.gvt"):
        answer = served.ask(target)
    assert header(served.ask("/"), "Location") == "/trace/three.gvt"
    assert (status(answer), tasks_of(answer)) == (200, [2])


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ("task=0", [0]),
        ("task=0-1", [0, 1]),
        ("task=all", [0, 1, 2]),
        ("from_ns=1000", [1, 2]),
        ("until_ns=999", [0]),
        ("from_ns=1050&until_ns=2000", [1, 2]),
        ("from_ns=100&until_ns=100", [0]),
    ],
)
def test_a_page_has_the_passes_that_are_asked_for(show, three, asked, shown):
    assert tasks_of(show(three).ask(f"/trace/three.gvt?{asked}")) == shown


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ("task=7", "no backward pass '7'"),
        ("task=<b>", "no backward pass"),
        ("task=failed", "no backward pass of the trace failed"),
        ("from_ns=101&until_ns=999", "no backward pass ran at that time"),
        ("from_ns=1e9", "from_ns is not a number: 1e9"),
        ("from_ns=" + "9" * 30, "from_ns is not a number"),
    ],
)
def test_an_invalid_query_is_refused_in_one_line(show, three, asked, why):
    answer = show(three).ask(f"/trace/three.gvt?{asked}")

    assert status(answer) == 404
    assert header(answer, "Content-Type").startswith("text/plain")
    assert why in body(answer).decode()
    assert body(answer).count(b"\n") == 1


def test_the_bar_leads_to_the_passes_before_and_after(show, three):
    found = links(show(three).ask("/trace/three.gvt?task=1"))

    assert found["previous"] == "/trace/three.gvt?task=0"
    assert found["next"] == "/trace/three.gvt?task=2"
    assert found["all 3 passes"] == "/passes/three.gvt"


def test_the_list_of_passes_leads_to_each(show, three):
    answer = show(three).ask("/passes/three.gvt")

    found = links(answer)
    assert [found[one] for one in "012"] == [
        f"/trace/three.gvt?task={i}" for i in range(3)
    ]
    assert b"<td>1 \xc2\xb5s</td><td>100 ns</td><td>completed</td>" in answer


def test_a_long_list_of_passes_is_cut_into_pages(show, tmp_path):
    path = tmp_path / "long.gvt"
    path.write_bytes(tell_passes(LISTED + 1))
    served = show(path)

    first = served.ask("/passes/long.gvt")
    second = served.ask(links(first)["later ones"])
    assert str(LISTED) not in links(first)
    assert str(LISTED) in links(second)
    assert links(second)["earlier ones"] == "/passes/long.gvt?first=0"


def test_a_page_says_in_its_head_what_it_may_do(show, three):
    policy = header(show(three).ask("/trace/three.gvt"), "Content-Security-Policy")

    rules = dict(one.split(" ", 1) for one in policy.split("; "))
    assert rules["default-src"] == rules["connect-src"] == "'none'"
    assert rules["frame-ancestors"] == "'none'"
    assert "unsafe" not in policy
    assert "http" not in policy


# --- a folder ---------------------------------------------------------------------


def test_a_folder_lists_its_traces_and_shows_each(show, three):
    (three.parent / "notes.txt").write_text("mine")
    served = show(three.parent)

    found = links(served.ask("/"))
    assert found == {
        "three.gvt": "/trace/three.gvt",
        "passes": "/passes/three.gvt",
    }
    assert tasks_of(served.ask("/trace/three.gvt")) == [2]


def test_a_trace_that_comes_later_is_listed(show, three):
    served = show(three.parent)

    (three.parent / "later.gvt").write_bytes(tell_passes(1))
    assert "later.gvt" in links(served.ask("/"))


@pytest.mark.parametrize(
    "target",
    [
        "/trace/secret.txt",
        "/trace/../secret.txt",
        "/trace/..%2fsecret.txt",
        "/trace/%2e%2e/secret.txt",
        "/trace/..%5csecret.txt",
        "/trace/%2fetc%2fpasswd",
        "/trace//etc/passwd",
        "/trace/three.gvt%00.txt",
        "/trace/three.gvt/",
        "/trace/three.gvt/..",
        "/trace/./three.gvt",
        "/trace/THREE.GVT",
        "/trace/",
        "/trace",
        "/static/three.gvt",
        "/three.gvt",
        "/secret.txt",
        "//evil.example/",
        "/trace/link.gvt",
        "/trace/folder.gvt",
        "/%252e%252e/secret.txt",
    ],
)
def test_only_what_is_listed_is_there(show, tmp_path, target):
    folder = tmp_path / "traces"
    folder.mkdir()
    (tmp_path / "secret.txt").write_text("a secret")
    (folder / "three.gvt").write_bytes(tell_passes(1))
    (folder / "link.gvt").symlink_to(tmp_path / "secret.txt")
    (folder / "folder.gvt").mkdir()

    answer = show(folder).ask(target)
    assert status(answer) == 404
    assert body(answer) == b"there is no such page\n"


def test_a_trace_that_is_none_is_one_line(show, tmp_path):
    path = tmp_path / "none.gvt"
    path.write_bytes(b"<script>")

    answer = show(path).ask("/trace/none.gvt")
    assert status(answer) == 404
    assert b"not a gradviz trace" in body(answer)
    assert header(answer, "Content-Type").startswith("text/plain")


@pytest.mark.parametrize("text", [one for one in HOSTILE if one and "/" not in one])
def test_a_name_of_a_file_is_text(show, tmp_path, text):
    name = text.encode(
        "utf-8", "surrogateescape" if "\ud800" not in text else "replace"
    )
    name = os.fsdecode(name.replace(b"\0", b"")[:200] + b".gvt")
    (tmp_path / name).write_bytes(tell_passes(1))
    (tmp_path / "other.gvt").write_bytes(tell_passes(1))
    served = show(tmp_path)

    listed = served.ask("/")
    assert b"<script" not in listed
    assert b"<b>" not in listed
    answer = served.ask(f"/trace/{quote(os.fsencode(name), safe='')}")
    assert tasks_of(answer) == [0]


# --- a recording that goes on -----------------------------------------------------


def test_a_page_of_a_recording_that_goes_on_asks_whether_there_is_more(show, tmp_path):
    path = tmp_path / "live.gvt"
    path.write_bytes(unclosed(tell_passes(2)))
    served = show(path)

    page = served.ask("/trace/live.gvt")
    assert tasks_of(page) == [1]
    assert "connect-src 'self'" in header(page, "Content-Security-Policy")
    edition = re.search(rb'data-edition="([^"]+)"', page)[1].decode()
    assert json.loads(body(served.ask("/state/live.gvt"))) == {"edition": edition}

    path.write_bytes(tell_passes(3))
    assert json.loads(body(served.ask("/state/live.gvt"))) != {"edition": edition}
    page = served.ask("/trace/live.gvt")
    assert tasks_of(page) == [2]
    assert b'id="live"' not in page


def more_of(served: Served, target: str) -> Callable[[], dict[str, str | None]]:
    """Asks, for the page of `target` as it is now, for what is new."""
    page = served.ask(target)
    more = re.search(rb'data-more="([^"]+)" data-shown="([^"]+)"', page)
    address, shown = (one.decode() for one in more.groups())
    query = target.partition("?")[2]
    return lambda: json.loads(
        body(served.ask(f"{address}?{query}{'&' * bool(query)}shown={shown}"))
    )


def test_a_page_of_a_recording_that_goes_on_is_given_only_what_is_new(
    show, tmp_path, monkeypatch
):
    monkeypatch.setattr(time, "time_ns", lambda: 0)  # one recording has one begin
    path = tmp_path / "live.gvt"
    path.write_bytes(unclosed(tell_passes(2)))
    served = show(path)
    last = more_of(served, "/trace/live.gvt")
    chosen = more_of(served, "/trace/live.gvt?task=0")
    assert last()["data"] is chosen()["data"] is None

    path.write_bytes(unclosed(tell_passes(3)))
    page = served.ask("/trace/live.gvt").decode()
    new = last()
    assert new["bar"] in page
    assert f'type="application/gzip">{new["data"]}<' in page
    assert "all 3 passes" in chosen()["bar"]
    assert chosen()["data"] is None  # another pass changes nothing of it


def test_a_page_that_has_nothing_to_show_any_more_is_told_so(show, tmp_path):
    path = tmp_path / "live.gvt"
    path.write_bytes(unclosed(tell_passes(2)))
    more = more_of(show(path), "/trace/live.gvt")

    path.write_bytes(b"")
    assert more() == {"bar": None, "data": None}


def test_a_pass_that_goes_on_is_not_shown_before_it_has_ended():
    trace = parse_trace(unclosed(tell_passes(2, num_ended=1)))

    assert choose_passes(trace, {}) == (0,)
    assert choose_passes(trace, {"task": "last"}) == (1,)


class Replaced(type(Path())):
    """A file that a recording replaces by an empty one after some looks at it."""

    looks = 0

    def stat(self, **options):
        found = super().stat(**options)
        type(self).looks -= 1
        if not type(self).looks:
            beside = Path(self.parent, "beside")
            beside.touch()
            beside.replace(self)
        return found


@pytest.mark.parametrize("looks", [1, 2, 3])
def test_a_trace_that_is_replaced_while_it_is_looked_at_is_waited_for(tmp_path, looks):
    path = Replaced(tmp_path / "x.gvt")
    Path(path).write_bytes(tell_passes(1))
    before = edition_of(path)
    Replaced.looks = looks
    shelf = Shelf(path)
    site = Site(shelf, before)

    answer = site.answer(ViewRequest("GET", "/trace/x.gvt", {}, {}))

    assert answer.status == 200
    assert b"waits for the first" in answer.body


@pytest.mark.parametrize("contents", [None, b"", unclosed(tell_passes(0))])
def test_a_page_waits_for_a_recording_that_begins(show, tmp_path, contents):
    path = tmp_path / "soon.gvt"
    if contents is not None:
        path.write_bytes(contents)
    served = show(path)

    answer = served.ask("/trace/soon.gvt")
    assert status(answer) == 200
    assert b"waits for the first" in answer
    path.write_bytes(tell_passes(1))
    assert tasks_of(served.ask("/trace/soon.gvt")) == [0]
