"""The interactive page of a recording, as notebooks show it below a cell."""

import html
import importlib
import os
from pathlib import Path
from typing import Final

from gradviz.analysis.tables.passes import select_task
from gradviz.errors import UserError
from gradviz.render.words.text import size
from gradviz.trace.format.atomic_file import write_whole
from gradviz.trace.format.model import Trace

#: Larger pages are embedded in a notebook only if that is asked for: they are saved
#: with it.
MAX_EMBEDDED: Final = 4 << 20

#: Pixels of the frame, unless something else is asked for.
HEIGHT: Final = 640
HEIGHTS: Final = (200, 4_000)

#: The page runs its own program, and hands a picture over when asked to. It is of no
#: origin: neither the notebook nor its server can be reached from there.
_SANDBOX: Final = "allow-scripts allow-downloads"

#: Jupyter drops the frame of a notebook that it does not trust, and shows the text.
_FRAME: Final = (
    '<iframe sandbox="{sandbox}" title="{title}" srcdoc="{page}" style="width: 100%; '
    'height: {height}px; border: 1px solid #d8dee4; box-sizing: border-box">'
    "Page of {title}: Jupyter shows it if the notebook is trusted</iframe>"
)


class Page:
    """A page to look at passes in a browser, which notebooks show in a frame.

    Args:
        page: The page, as a file.
        title: Passes that it shows, in words.
        height: Height of the frame, in pixels.
        embed: Show it, however large it is.
    """

    def __init__(
        self, page: bytes, title: str, *, height: int = HEIGHT, embed: bool = False
    ) -> None:
        self._page = page
        self._title = title
        self._height = height
        self._is_shown = embed or len(page) <= MAX_EMBEDDED

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to a file, which is replaced, and return its path.

        Raises:
            UserError: The file cannot be written.
        """
        path = Path(path)
        try:
            write_whole(path, [self._page])
        except OSError as error:
            raise UserError(f"cannot write {path}: {error.strerror}") from None
        return path

    def _repr_html_(self) -> str:
        if not self._is_shown:
            return f"<p>{html.escape(repr(self))}</p>"
        return _FRAME.format(
            sandbox=_SANDBOX,
            title=html.escape(self._title),
            page=html.escape(self._page.decode()),
            height=self._height,
        )

    def __repr__(self) -> str:
        about = f"Page of {self._title}, {size(len(self._page))}"
        if self._is_shown:
            return f"<{about}: .save('page.html') writes it to a file>"
        return (
            f"<{about}, too large to be saved with a notebook: page(embed=True) "
            f"shows it here all the same, .save('page.html') writes it to a file>"
        )


def recorded_page(
    trace: Trace, task: str | int, *, height: int = HEIGHT, embed: bool = False
) -> Page:
    """Make the page of some passes of a trace.

    Args:
        trace: The trace.
        task: Passes to show, as the option ``--pass`` has it.
        height: Height of the frame, in pixels, 200 to 4,000.
        embed: Show it, however large it is.

    Raises:
        UserError: There is no such pass, or the height is too small or too large.
    """
    least, most = HEIGHTS
    if not least <= height <= most:
        raise UserError(f"a page is {least:,} to {most:,} pixels high, not {height!r}")
    # Loaded where it is needed: what draws pages is much.
    document = importlib.import_module("gradviz.render.page.document")
    writing = importlib.import_module("gradviz.render.page.html")
    page = document.build_page(trace, select_task(trace, task))
    title = page.header.file or "a recording"
    written: bytes = writing.write_page(document.pack_page(page), f"{title} · gradviz")
    return Page(written, title, height=height, embed=embed)
