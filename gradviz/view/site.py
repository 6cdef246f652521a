"""The site that a server of traces shows: lists of traces and of passes, pages."""

import base64
import hashlib
import json
import os
from collections.abc import Mapping
from http import HTTPStatus
from importlib import resources
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote, urlencode

from gradviz.analysis.memory.allocations import Holdings, holdings
from gradviz.analysis.tables.passes import Pass, passes, select_task
from gradviz.errors import UserError
from gradviz.render.markup import element
from gradviz.render.page.document import build_page, pack_page
from gradviz.render.page.html import PageBar, hash_of, page_policy, write_page
from gradviz.render.words.text import clean, count, duration, shorten, size
from gradviz.trace.format.model import Trace
from gradviz.view.http import NOTHING, ViewRequest, ViewResponse, moved, refusal
from gradviz.view.lists import STYLE, Link, list_page, written
from gradviz.view.shelf import Edition, Shelf, edition_of

#: Passes on a list.
LISTED: Final = 500

#: Longer names are cut.
_MAX_NAME: Final = 60

_HTML: Final = "text/html; charset=utf-8"
_NOWHERE: Final = refusal(HTTPStatus.NOT_FOUND, "there is no such page")

_BAR_STYLE: Final = """\
@media screen {
  body { display: flex; flex-direction: column; height: 100vh; height: 100dvh }
  #page { flex: 1 1 0; min-height: 0 }
}
@media print { #bar { display: none } }
#bar { display: flex; gap: 14px; padding: 4px 10px; font-size: 13px }
#bar a { color: inherit }
#live { margin-left: auto }
@media (max-width: 819px) {
  #bar { flex-wrap: wrap; align-items: center; gap: 0 14px }
  #bar :is(a, label) { display: flex; align-items: center }
  #bar :is(a, label) { min-width: 44px; min-height: 44px }
  #bar input { width: 22px; height: 22px }
}
"""

_FOLLOW: Final = '<label><input id="follow" type="checkbox" checked> follow</label>'


class ShownPasses(NamedTuple):
    """Contents of a page of passes.

    Attributes:
        bar: The bar above it.
        data: Its data, packed.
        digest: Name of the data: other data has another.
    """

    bar: PageBar
    data: bytes
    digest: str


class Site:
    """The answers, one at a time.

    - ``/``: the traces of a folder; for one trace its page
    - ``/trace/NAME``: the page of some passes, ``?task=`` as on the command line; or of
      those that ran between ``?from_ns=`` and ``?until_ns=`` of the recording
    - ``/passes/NAME``: a list of the passes, from ``?first=`` on
    - ``/state/NAME``: JSON, by which a page knows whether there is more
    - ``/more/NAME``: JSON, what of that page is new: its bar, null while there is
      nothing to show, and its data, null if it is that whose digest is ``?shown=``

    Args:
        shelf: The traces.
        before: Edition of its trace before it is written; None if that has begun.
    """

    def __init__(self, shelf: Shelf, before: Edition | None = None) -> None:
        self._shelf = shelf
        self._before = before
        self._last: tuple[object, ShownPasses] | None = None
        self._held: tuple[object, Holdings] | None = None

    def answer(self, request: ViewRequest) -> ViewResponse:
        """Return the answer to an admitted browser."""
        traces = self._shelf.traces()
        if request.path == "/":
            if self._shelf.is_folder:
                return _list_of_traces(traces)
            return moved(_address("trace", *traces))
        _, kind, name, *more = (*request.path.split("/"), "")
        if name not in traces or more != [""]:
            return _NOWHERE
        path = traces[name]
        try:
            if kind == "trace":
                return self._page(path, request.query)
            if kind == "more":
                return _json(self._more(path, request.query))
            if kind == "passes":
                return self._list_of_passes(path, request.query)
            if kind == "state":
                return _json({"edition": str(edition_of(path))})
        except UserError as error:
            return refusal(HTTPStatus.NOT_FOUND, clean(str(error)))
        return _NOWHERE

    def _page(self, path: Path, query: Mapping[str, str]) -> ViewResponse:
        shown = self._found(path, query)
        if not isinstance(shown, ShownPasses):
            return _waiting(path, shown)
        title = f"{_shown(path)} · gradviz"
        markup = write_page(shown.data, title, bar=shown.bar)
        policy = f"{page_policy(shown.bar)}; frame-ancestors 'none'"
        return ViewResponse(HTTPStatus.OK, markup, _HTML, policy, is_page=True)

    def _more(self, path: Path, query: Mapping[str, str]) -> dict[str, str | None]:
        shown = self._found(path, query)
        if not isinstance(shown, ShownPasses):
            return {"bar": None, "data": None}
        is_known = query.get("shown") == shown.digest
        data = None if is_known else base64.b64encode(shown.data).decode()
        return {"bar": shown.bar.markup, "data": data}

    def _found(
        self, path: Path, query: Mapping[str, str]
    ) -> ShownPasses | Edition | None:
        """Return the contents of a page; the last ones are kept, for who looks again.

        While there is nothing to show, that is the edition without it, if there is one.
        """
        # One look at the file: between two, a recording may replace it by an empty one.
        found = edition_of(path) if path.exists() else None
        if found is None or not found.size_bytes:
            return None
        if found == self._before:
            return self._before
        trace, edition = self._shelf.read(path)
        if not trace.tasks and not trace.losses.closed:
            return edition
        tasks = choose_passes(trace, query)
        key = path, edition, tasks
        if self._last is None or self._last[0] != key:
            self._last = None
            if self._held is None or self._held[0] != (path, edition):
                self._held = None
                self._held = (path, edition), holdings(trace)
            data = pack_page(build_page(trace, tasks, self._held[1]))
            digest = hashlib.sha256(data).hexdigest()
            bar = _bar(path, trace, edition, tasks, digest)
            self._last = key, ShownPasses(bar, data, digest)
        return self._last[1]

    def _list_of_passes(self, path: Path, query: Mapping[str, str]) -> ViewResponse:
        trace, _ = self._shelf.read(path)
        every = passes(trace, limit=None)
        origin_ns = every[0].begin_ns if every else 0
        first = min(max(_number(query, "first", 0), 0), len(every))
        until = min(first + LISTED, len(every))
        links = [
            Link("all traces" if self._shelf.is_folder else "the last pass", "/"),
            *(Link(which, _page_of(path, which)) for which in ("slowest", "failed")),
        ]
        for words, begin in (("earlier", first - LISTED), ("later", until)):
            if -LISTED < begin < len(every) and begin != first:
                to = _address("passes", path.name, first=str(max(begin, 0)))
                links.append(Link(f"{words} ones", to))
        return _own(
            list_page(
                f"{count(len(every), 'backward pass')} of {_shown(path)}",
                links,
                ("pass", "began after", "took", "ended", "line", "error"),
                (
                    (
                        Link(f"{one.task}", _page_of(path, f"{one.task}")),
                        duration(one.begin_ns - origin_ns),
                        "" if one.duration_ns is None else duration(one.duration_ns),
                        one.status,
                        shorten(clean(one.location), _MAX_NAME),
                        shorten(clean(one.error), _MAX_NAME),
                    )
                    for one in every[first:until]
                ),
                note=f"Passes {first:,} to {until - 1:,} are listed.",
            )
        )


def choose_passes(trace: Trace, query: Mapping[str, str]) -> tuple[int, ...]:
    """The passes that are asked for.

    If nothing is said it is the last one, of a recording that goes on the last that has
    ended.

    Raises:
        UserError: There are none.
    """
    outer = [one for one in passes(trace, limit=None) if one.parent < 0]
    if "from_ns" in query or "until_ns" in query:
        origin_ns = outer[0].begin_ns if outer else 0
        begin_ns = origin_ns + _number(query, "from_ns", 0)
        end_ns = origin_ns + _number(query, "until_ns", 1 << 62)
        found = [one.task for one in outer if _ran(one, begin_ns, end_ns)]
        if not found:
            raise UserError("no backward pass ran at that time")
        return tuple(found)
    ended = [one.task for one in outer if one.status != "unfinished"]
    if "task" not in query and not trace.losses.closed and ended:
        return (ended[-1],)
    return select_task(trace, query.get("task", "last"))


def _ran(one: Pass, begin_ns: int, end_ns: int) -> bool:
    return one.begin_ns <= end_ns and (one.end_ns is None or one.end_ns >= begin_ns)


def _number(query: Mapping[str, str], name: str, default: int) -> int:
    text = query.get(name, "")
    if text and not (text.isdecimal() and text.isascii() and len(text) < 19):
        raise UserError(f"{name} is not a number: {text}")
    return int(text or default)


def _list_of_traces(traces: Mapping[str, Path]) -> ViewResponse:
    rows = [
        (
            Link(shorten(clean(name), _MAX_NAME), _page_of(path)),
            size(edition_of(path).size_bytes),
            Link("passes", _address("passes", name)),
        )
        for name, path in traces.items()
        if path.exists()
    ]
    title = count(len(rows), "trace")
    return _own(list_page(title, (), ("trace", "size", ""), rows))


# --- what is around a page ------------------------------------------------------


def _bar(
    path: Path, trace: Trace, edition: Edition, tasks: tuple[int, ...], digest: str
) -> PageBar:
    """Return the bar above a page: its passes, and links to others."""
    known = passes(trace, limit=None)
    every = [one.task for one in known if one.parent < 0]
    at = every.index(tasks[0]) if tasks[0] in every else -1
    words = f"pass {tasks[0]}" if len(tasks) == 1 else count(len(tasks), "pass")
    parts = [written(Link(_shown(path), "/")), element("span", words)]
    for name, task in (("previous", at - 1), ("next", at + 1)):
        if at >= 0 and 0 <= task < len(every):
            parts.append(written(Link(name, _page_of(path, f"{every[task]}"))))
    all_of_them = f"all {count(len(known), 'pass')}"
    parts.append(written(Link(all_of_them, _address("passes", path.name))))
    is_live = not trace.losses.closed
    if is_live:
        parts += [_live(path, edition, digest), _FOLLOW]
    markup = f'<nav id="bar" aria-label="Trace">{"".join(parts)}</nav>'
    return PageBar(markup, _BAR_STYLE, _live_program() if is_live else "")


def _live(path: Path, edition: Edition | None, digest: str = "") -> str:
    """Return the note that a recording goes on, and the addresses for updates."""
    more = f' data-more="{_address("more", path.name)}" data-shown="{digest}"'
    return (
        f'<span id="live" role="status" data-state="{_address("state", path.name)}" '
        f'data-edition="{edition or ""}"{more * bool(digest)}>the recording goes on '
        "</span>"
    )


def _waiting(path: Path, edition: Edition | None) -> ViewResponse:
    """A page that waits until there is something to show."""
    program = _live_program()
    end = f"<p>{_live(path, edition)}</p><script>{program}</script>"
    note = "No backward pass has been recorded yet. This page waits for the first."
    return _own(list_page(_shown(path), (), (), (), note, end), program)


def _json(document: Mapping[str, str | None]) -> ViewResponse:
    content = json.dumps(document).encode()
    return ViewResponse(HTTPStatus.OK, content, "application/json")


def _own(markup: bytes, program: str = "") -> ViewResponse:
    policy = f"{NOTHING}; style-src {hash_of(STYLE)}"
    if program:
        policy += f"; script-src {hash_of(program)}; connect-src 'self'"
    return ViewResponse(HTTPStatus.OK, markup, _HTML, policy)


def _live_program() -> str:
    return (resources.files(__package__) / "live.js").read_text("utf-8")


def _shown(path: Path) -> str:
    return shorten(clean(path.name), _MAX_NAME)


def _address(kind: str, name: str, **query: str) -> str:
    asked = f"?{urlencode(query)}" if query else ""
    return f"/{kind}/{quote(os.fsencode(name), safe='')}{asked}"


def _page_of(path: Path, task: str = "") -> str:
    return _address("trace", path.name, **({"task": task} if task else {}))
