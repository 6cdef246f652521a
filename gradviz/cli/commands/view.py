"""``gradviz view``."""

import asyncio
from pathlib import Path
from threading import Thread

import click

from gradviz.cli.console.notes import note
from gradviz.cli.console.options import complete_trace
from gradviz.cli.console.trace_argument import find_trace
from gradviz.cli.console.viewer import show_with_desktop
from gradviz.errors import TraceError
from gradviz.view.admission import Admission, new_token
from gradviz.view.server import ViewServer, listen
from gradviz.view.shelf import Shelf, edition_of
from gradviz.view.site import Site


@click.command("view")
@click.argument(
    "place",
    metavar="[TRACE|FOLDER]",
    required=False,
    type=click.Path(path_type=Path),
    shell_complete=complete_trace,
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="PORT",
    help="The port on 127.0.0.1. [default: any free port]",
)
@click.option("--no-open", is_flag=True, help="Only print the address.")
@click.option("--once", is_flag=True, help="Exit after the first page request.")
def command(place: Path | None, port: int, no_open: bool, once: bool) -> None:
    """Show traces in a browser, until Ctrl-C.

    A trace that is still being written is followed. FOLDER shows all its *.gvt.

    Example:
        gradviz view first.gvt
    """
    place = find_trace(place)
    if not place.exists():
        raise TraceError(f"there is no {place}: name a trace, or a folder of traces")
    server = begin_view(place, port, is_opened=not no_open, is_once=once)
    asyncio.run(server.serve())


def begin_view(
    place: Path,
    port: int = 0,
    *,
    is_opened: bool = True,
    is_once: bool = False,
    is_written_anew: bool = False,
) -> ViewServer:
    """A server that browsers can reach once it serves; says where, and opens one.

    Args:
        place: A trace, or a folder of them.
        port: Port to listen on, 0 for any.
        is_opened: True if a browser is to be opened.
        is_once: True if it ends when a page has been fetched.
        is_written_anew: True if what is there now is not to be shown.

    Raises:
        UserError: The port is not to be had.
    """
    listening = listen(port)
    admission = Admission(new_token(), listening.getsockname()[1])
    note(f"showing {place} at {admission.address} until Ctrl-C")
    if is_opened:
        # The desktop may take its time, and the browser asks meanwhile.
        Thread(target=_open, args=(admission.address,), daemon=True).start()
    before = edition_of(place) if is_written_anew and place.exists() else None
    site = Site(Shelf(place), before)
    return ViewServer(
        listening, admission, site.answer, is_last=lambda one: is_once and one.is_page
    )


def _open(address: str) -> None:
    if not show_with_desktop(address, f"open {address} yourself"):
        note("no browser found: open the address yourself")
