"""Pictures as commands: the file, its format, and the note that says what it shows."""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, get_args

import click

from gradviz.cli.console.notes import note, note_next
from gradviz.cli.console.options import (
    force_option,
    open_option,
    output_option,
    quiet_option,
    task_option,
    trace_argument,
)
from gradviz.cli.console.output import called, check_output, format_of, write_output
from gradviz.cli.console.trace_argument import NODE_RUNS, find_trace, read_trace
from gradviz.cli.console.viewer import check_viewable, show_file
from gradviz.render.conversion import (
    PICTURE_FORMATS,
    check_convertible,
)


class PictureFile(NamedTuple):
    """A picture that was drawn.

    Attributes:
        data: The contents of the file.
        about: Description of what it shows, in words.
        verb: Verb for what was done to make it.
    """

    data: bytes
    about: str
    verb: str = "drew"


def picture_command(
    name: str,
    *,
    options: Sequence[Callable[[Any], Any]] = (),
    then: str,
    needs: Collection[str] = NODE_RUNS,
    all_nodes: bool = False,
    formats: Sequence[str] = PICTURE_FORMATS,
    settings: Mapping[str, object] = MappingProxyType({}),
) -> Callable[[Callable[..., PictureFile]], click.Command]:
    """Return a decorator: it makes a command of a function that draws a trace.

    The function takes the trace, the format of the picture, ``task``, and what its own
    options give. Its docstring is the help.

    Args:
        name: Name that a user types after ``render``.
        options: Options besides those that all pictures have.
        then: The command to propose next.
        needs: Kinds of events without which the picture would be wrong.
        all_nodes: True if it would be wrong where only some nodes were recorded.
        formats: Suffixes of the file; the first is that of a file nobody named.
        settings: Those of Click's context.
    """

    def decorate(draw: Callable[..., PictureFile]) -> click.Command:
        def command(
            trace_path: Path | None,
            output: Path | None,
            *,
            force: bool,
            is_opened: bool,
            quiet: bool,
            **asked: object,
        ) -> None:
            trace_path = find_trace(trace_path)
            output = output or Path(f"gradviz-{name}-{trace_path.stem}.{formats[0]}")
            format_ = _writable_format(
                output, formats, force=force, is_opened=is_opened
            )
            trace = read_trace(trace_path, needs=needs, all_nodes=all_nodes)
            picture = draw(trace, format_, **asked)
            write_output(output, picture.data)
            if not quiet:
                note(f"{picture.verb} {called(output)}: {picture.about}")
                note_next(then, trace_path)
            if is_opened:
                show_file(output)

        command.__doc__ = draw.__doc__
        for option in reversed(
            [
                trace_argument,
                output_option(f"gradviz-{name}-<trace>.{formats[0]}"),
                force_option,
                task_option,
                *options,
                open_option,
                quiet_option,
            ]
        ):
            command = option(command)
        return click.command(name, context_settings={**settings})(command)

    return decorate


def color_option(kinds: object) -> Callable[[Any], Any]:
    """Return the option that says what colors mean: one text of a Literal."""
    return click.option(
        "--color",
        "color_by",
        type=click.Choice(get_args(kinds)),
        default="auto",
        show_default=True,
        help="What the colors of nodes stand for.",
    )


def _writable_format(
    output: Path, formats: Sequence[str], *, force: bool, is_opened: bool
) -> str:
    """Return a picture's format, before any work is done for what cannot be written.

    Raises:
        click.UsageError: The suffix is none of a picture.
        MissingToolError: The tool that makes that format is not here.
        UserError: It cannot be written there.
    """
    format_ = format_of(output, formats)
    for one in PICTURE_FORMATS:
        if one == format_:
            check_convertible(one)
    check_viewable(output, is_opened=is_opened)
    check_output(output, force=force)
    return format_
