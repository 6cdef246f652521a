"""Pictures of what happens over time: a part of each pass, one below the other."""

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import click

from gradviz.analysis.tables.passes import select_task
from gradviz.analysis.tables.window import NoSuchMomentError
from gradviz.cli.console.notes import note, working
from gradviz.cli.console.options import part_options
from gradviz.cli.render.picture_command import PictureFile, picture_command
from gradviz.render.charts.time_chart import MAX_WIDTH, MIN_WIDTH, WIDTH
from gradviz.render.conversion import PictureFormat, converted
from gradviz.render.words.text import count
from gradviz.trace.format.model import Trace

Panel = TypeVar("Panel")

#: Maximum number of passes drawn one below the other.
MAX_PANELS: Final = 40

width_option = click.option(
    "--width",
    type=click.IntRange(MIN_WIDTH, MAX_WIDTH),
    default=WIDTH,
    show_default=True,
    metavar="PIXELS",
    help="The width of the picture.",
)

#: ``--to`` is another name of ``--until`` here; of `export` it means another thing.
_SETTINGS: Final = {
    "token_normalize_func": lambda name: "until" if name == "to" else name
}

_HELP: Final = """\
{summary}

The suffix of FILE is the format: svg needs no tool, png and pdf need the extra
pictures.

Example:
    gradviz render {name} -o first.svg first.gvt
"""


class PictureRequest(NamedTuple):
    """A picture that a user asks for.

    Attributes:
        trace: The trace.
        task: Its passes, as ``--pass`` has them.
        begin_ns: The first moment, after the begin of each pass.
        end_ns: The last one; None for the end.
        width: Of the picture, in pixels.
        format: Of the file.
    """

    trace: Trace
    task: str
    begin_ns: int
    end_ns: int | None
    width: int
    format: PictureFormat


def over_time_command(
    name: str,
    *,
    options: Sequence[Callable[[Any], Any]] = (part_options, width_option),
    then: str,
    needs: Collection[str],
    all_nodes: bool = False,
) -> Callable[[Callable[..., PictureFile]], click.Command]:
    """Return a decorator: it makes a command of a function that draws over time.

    The function takes a `PictureRequest`, and what its own options give. Its docstring
    is one sentence, for the help.

    Args:
        name: Name that a user types after ``render``.
        options: Options in their order, `part_options` and `width_option` among them.
        then: The command to propose next.
        needs: Kinds of events without which the picture would be wrong.
        all_nodes: True if it would be wrong where only some nodes were recorded.
    """

    def decorate(draw: Callable[..., PictureFile]) -> click.Command:
        def draw_part(
            trace: Trace,
            format: PictureFormat,  # noqa: A002 - what it is called everywhere
            *,
            task: str,
            begin_ns: int | None,
            end_ns: int | None,
            width: int,
            **own: object,
        ) -> PictureFile:
            begin_ns = begin_ns or 0
            if end_ns is not None and end_ns <= begin_ns:
                raise click.UsageError("--until must be later than --from")
            return draw(
                PictureRequest(trace, task, begin_ns, end_ns, width, format), **own
            )

        draw_part.__doc__ = _HELP.format(summary=draw.__doc__ or "", name=name)
        return picture_command(
            name,
            options=options,
            then=then,
            needs=needs,
            all_nodes=all_nodes,
            settings=_SETTINGS,
        )(draw_part)

    return decorate


def panels_of(
    request: PictureRequest, build: Callable[[int, int, int | None], Panel]
) -> list[Panel]:
    """Return what is drawn of each pass that is asked for; of very many, of the first.

    Args:
        request: Request for some passes, and for a part of their time.
        build: Makes it of a pass and a part of its time; of one that ends before the
            part begins there is nothing.

    Raises:
        NoSuchMomentError: All passes end before the part begins.
        UserError: There is no pass.
    """
    tasks = select_task(request.trace, request.task)
    if len(tasks) > MAX_PANELS:
        note(f"{MAX_PANELS} passes of {len(tasks):,} are drawn, the first ones")
    found: list[Panel] = []
    over: list[int] = []
    for one in tasks[:MAX_PANELS]:
        try:
            found.append(build(one, request.begin_ns, request.end_ns))
        except NoSuchMomentError:
            over.append(one)
            if len(over) == len(tasks[:MAX_PANELS]):
                raise
    if over:
        are = "is" if len(over) == 1 else "are"
        note(f"{count(len(over), 'pass')} that ended before {are} not drawn")
    return found


def drawn(request: PictureRequest, about: str, svg: Callable[[], bytes]) -> PictureFile:
    """Draw an SVG and convert it to the format of a request.

    Args:
        request: It has the format.
        about: Contents of the picture, in words.
        svg: Draws it.

    Raises:
        UserError: It cannot be converted.
    """
    with working(f"drawing {about}"):
        return PictureFile(converted(svg(), request.format), about)


def program_of(trace: Trace) -> str:
    """The program that was recorded, without the folders; empty if it has no name."""
    program = Path(trace.header.argv[0]).name if trace.header.argv else ""
    return "" if program.startswith("-") else program  # as of ``python -c``
