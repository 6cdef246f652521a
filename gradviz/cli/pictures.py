"""What the commands that draw what happens over time have in common."""

from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

import click

from gradviz.analysis.passes import select_task
from gradviz.analysis.queues import NoSuchMomentError
from gradviz.cli.notes import note, note_next
from gradviz.cli.progress import working
from gradviz.cli.viewer import check_viewable, show_file
from gradviz.cli.writing import called, check_output, format_of, write_output
from gradviz.render.charts import MAX_WIDTH, MIN_WIDTH, WIDTH
from gradviz.render.conversion import PICTURE_FORMATS, check_convertible, converted
from gradviz.render.text import count
from gradviz.trace.model import Trace

Panel = TypeVar("Panel")

#: So many passes are drawn one below the other.
MAX_PANELS: Final = 40

#: ``--to`` is another name of ``--until`` here; of `export` it means another thing.
SETTINGS: Final = {
    "token_normalize_func": lambda name: "until" if name == "to" else name
}

width_option = click.option(
    "--width",
    type=click.IntRange(MIN_WIDTH, MAX_WIDTH),
    default=WIDTH,
    show_default=True,
    metavar="PIXELS",
    help="How wide the picture is.",
)


def check_picture(output: Path, *, force: bool, is_opened: bool) -> None:
    """Refuse a picture that cannot be made or written, before any work is done for it.

    Raises:
        click.UsageError: The suffix is none of a picture.
        MissingToolError: What makes that format is not here.
        UserError: It cannot be written there.
    """
    check_convertible(format_of(output, PICTURE_FORMATS))
    check_viewable(output, is_opened=is_opened)
    check_output(output, force=force)


def panels_of(
    trace: Trace,
    task: str,
    begin_ns: int | None,
    end_ns: int | None,
    build: Callable[[int, int, int | None], Panel],
) -> list[Panel]:
    """What is drawn of each pass that ``--task`` means; of very many, of the first.

    Args:
        trace: The trace.
        task: The passes.
        begin_ns: Not before that time, None for the begin.
        end_ns: Not after it, None for the end.
        build: Makes it of a pass and a part of its time; of one that ends before the
            part begins there is nothing.

    Raises:
        click.UsageError: The part ends before it begins.
        NoSuchMomentError: All passes end before it.
        UserError: There is no pass.
    """
    begin_ns = begin_ns or 0
    if end_ns is not None and end_ns <= begin_ns:
        raise click.UsageError("--until is not after --from: there is nothing between")
    tasks = select_task(trace, task)
    if len(tasks) > MAX_PANELS:
        note(f"{MAX_PANELS} passes of {len(tasks):,} are drawn, the first ones")
    found: list[Panel] = []
    over: list[int] = []
    for one in tasks[:MAX_PANELS]:
        try:
            found.append(build(one, begin_ns, end_ns))
        except NoSuchMomentError:
            over.append(one)
            if len(over) == len(tasks[:MAX_PANELS]):
                raise
    if over:
        are = "is" if len(over) == 1 else "are"
        note(f"{count(len(over), 'pass')} that ended before {are} not drawn")
    return found


def write_picture(
    output: Path,
    draw: Callable[[], bytes],
    *,
    quiet: bool,
    is_opened: bool,
    what: str,
    then: str,
    trace_path: Path,
) -> None:
    """Draw, write it in the format that its suffix names, and say so.

    Args:
        output: The file.
        draw: Makes an SVG.
        quiet: Whether to say nothing.
        is_opened: Whether to show the picture.
        what: What is drawn, in words.
        then: The command that is of use next.
        trace_path: The trace, for that command.
    """
    with working(f"drawing {what}"):
        data = converted(draw(), format_of(output, PICTURE_FORMATS))
    write_output(output, data)
    if not quiet:
        note(f"drew {called(output)}: {what}")
        note_next(then, trace_path)
    if is_opened:
        show_file(output)


def program_of(trace: Trace) -> str:
    """The program that was recorded, without the folders; empty if it has no name."""
    program = Path(trace.header.argv[0]).name if trace.header.argv else ""
    return "" if program.startswith("-") else program  # as of ``python -c``
