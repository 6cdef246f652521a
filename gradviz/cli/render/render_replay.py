"""``gradviz render replay``."""

from typing import Final

import click

from gradviz.analysis.moments.event_replay import Replay
from gradviz.analysis.moments.story import Filter, kinds_named
from gradviz.analysis.moments.subject_search import find_subject
from gradviz.analysis.tables.passes import select_task
from gradviz.cli.console.notes import note, working
from gradviz.cli.console.options import part_options, subject_options
from gradviz.cli.render.graph_options import pixels
from gradviz.cli.render.picture_command import PictureFile, picture_command
from gradviz.render.film.film import (
    HOLD_S,
    MAX_FRAMES,
    MAX_SIZE,
    MIN_SIZE,
    SIZE,
    SPEED,
    frames_of,
    make_film,
)
from gradviz.render.film.movie import (
    FILM_FORMATS,
    FilmFormat,
    check_playable,
    movie,
)
from gradviz.render.words.text import count
from gradviz.trace.format.model import Trace

#: Frames in a second, at most.
MAX_SPEED: Final = 30.0


def _size(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> tuple[int, int]:
    """The width and the height of a film.

    Raises:
        click.BadParameter: They are none, or too small or too large.
    """
    del context, parameter
    found = pixels(text) or SIZE
    limits = zip(MIN_SIZE, found, MAX_SIZE, strict=True)
    if not all(low <= one <= high for low, one, high in limits):
        least, most = ("{}x{}".format(*one) for one in (MIN_SIZE, MAX_SIZE))
        raise click.BadParameter(f"expected {least} to {most}, got {text!r}")
    return found


@picture_command(
    "replay",
    options=(
        subject_options,
        part_options,
        click.option(
            "--speed",
            type=click.FloatRange(0.1, MAX_SPEED),
            default=SPEED,
            show_default=True,
            metavar="N",
            help="Events per second.",
        ),
        click.option(
            "--length",
            "length_s",
            type=click.FloatRange(min=2 * HOLD_S),
            metavar="SECONDS",
            help="The longest duration of the film; if needed, events are left out.",
        ),
        click.option(
            "--size",
            callback=_size,
            metavar="WIDTHxHEIGHT",
            help="The width and height in pixels. [default: {}x{}]".format(*SIZE),
        ),
    ),
    then="replay",
    formats=FILM_FORMATS,
)
def command(  # noqa: PLR0913 - each of them narrows it down
    trace: Trace,
    format: FilmFormat,  # noqa: A002 - what it is called everywhere
    *,
    task: str,
    of: str | None,
    kinds: tuple[str, ...],
    begin_ns: int | None,
    end_ns: int | None,
    speed: float,
    length_s: float | None,
    size: tuple[int, int],
) -> PictureFile:
    """Make a film of a backward pass: its graph, queues and countdowns, by event.

    The suffix of FILE is the format: svg, which moves by itself, needs no tool; mp4
    and gif need the extra film.

    Example:
        gradviz render replay -o first.svg first.gvt
    """
    check_playable(format)
    tasks = select_task(trace, task)
    if len(tasks) > 1:
        raise click.UsageError("a film shows one backward pass: --pass N, or last")
    wanted = Filter(
        subject=None if of is None else find_subject(trace, of, task),
        tasks=tasks,
        kinds=kinds_named(kinds),
        begin_ns=begin_ns,
        end_ns=end_ns,
    )
    replay = Replay(trace, wanted)
    most = MAX_FRAMES
    if length_s is not None:
        most = min(most, max(int((length_s - HOLD_S) * speed), 2))
    places = frames_of(replay, most)
    if len(places) < len(replay):
        note(
            f"{len(places):,} of {count(len(replay), 'event')} are in the film: "
            f"--from, --until, --kind and --of choose others"
        )
    with working(f"filming {count(len(places), 'event')}"):
        film = make_film(replay, tasks[0], places, size=size, speed=speed)
        data = film.svg() if format == "svg" else movie(film, format)
    return PictureFile(
        data,
        f"{count(len(places), 'event')}, {film.num_frames / speed:.3g} s",
        verb="filmed",
    )
