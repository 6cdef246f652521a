"""``gradviz render report``."""

from gradviz.analysis.tables.passes import select_task
from gradviz.cli.console.notes import working
from gradviz.cli.render.picture_command import PictureFile, picture_command
from gradviz.render.page.document import build_page, pack_page
from gradviz.render.page.html import write_page
from gradviz.render.words.text import count
from gradviz.trace.format.model import Trace


@picture_command("report", then="show order", formats=("html",))
def command(trace: Trace, _format: str, *, task: str) -> PictureFile:
    """Write a page to look at a backward pass in a browser: one file, no network.

    Example:
        gradviz render report -o first.html first.gvt
    """
    tasks = select_task(trace, task)
    with working(f"drawing {count(len(tasks), 'pass')}"):
        page = build_page(trace, tasks)
        title = page.header.file or "a recording"
        written = write_page(pack_page(page), f"{title} · gradviz")
    about = page.header
    num_passes = len({part.whole for part in about.passes})
    return PictureFile(
        written,
        f"{count(num_passes, 'pass')}, {count(len(page.nodes.id), 'node')}, "
        f"{count(about.num_events, 'event')}",
        verb="wrote",
    )
