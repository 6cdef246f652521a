"""``gradviz render report``."""

from pathlib import Path

import click

from gradviz.analysis.passes import select_task
from gradviz.cli.notes import note, note_next
from gradviz.cli.options import (
    force_option,
    open_option,
    output_option,
    quiet_option,
    task_option,
    trace_argument,
)
from gradviz.cli.progress import working
from gradviz.cli.reading import NODE_RUNS, find_trace, read_trace
from gradviz.cli.viewer import check_viewable, show_file
from gradviz.cli.writing import called, check_output, format_of, write_output
from gradviz.render.page.document import build_page, pack_page
from gradviz.render.page.html import write_page
from gradviz.render.text import count


@click.command("report")
@trace_argument
@output_option("gradviz-report-<trace>.html")
@force_option
@task_option
@open_option
@quiet_option
def command(
    trace_path: Path | None,
    output: Path | None,
    force: bool,
    task: str,
    is_opened: bool,
    quiet: bool,
) -> None:
    """Write a page to look at a backward pass in a browser: one file, no network.

    Example:
        gradviz render report -o first.html first.gvt
    """
    trace_path = find_trace(trace_path)
    output = output or Path(f"gradviz-report-{trace_path.stem}.html")
    format_of(output, ("html",))
    check_viewable(output, is_opened=is_opened)
    check_output(output, force=force)
    trace = read_trace(trace_path, needs=NODE_RUNS)
    tasks = select_task(trace, task)
    with working(f"drawing {count(len(tasks), 'pass')}"):
        page = build_page(trace, tasks)
        title = page.header.file or "a recording"
        written = write_page(pack_page(page), f"{title} · gradviz")
    write_output(output, written)
    if not quiet:
        about = page.header
        note(
            f"wrote {called(output)}: {count(len(about.passes), 'pass')}, "
            f"{count(len(page.nodes.id), 'node')}, {count(about.num_events, 'event')}"
        )
        note_next("show order", trace_path)
    if is_opened:
        show_file(output)
