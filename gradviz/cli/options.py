"""Options and arguments that several commands share."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., object])

force_option = click.option(
    "-f", "--force", is_flag=True, help="Replace the output if it exists."
)

quiet_option = click.option(
    "-q", "--quiet", is_flag=True, help="Say nothing but errors and warnings."
)

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON instead of a table."
)

task_option = click.option(
    "--task",
    default="last",
    show_default=True,
    metavar="N|N-M|last|slowest|failed|all",
    help="Which backward passes.",
)

trace_argument = click.argument(
    "trace_path",
    metavar="[TRACE]",
    required=False,
    type=click.Path(path_type=Path),
)


def output_option(default: str) -> Callable[[Command], Command]:
    """The file to write; `default` describes what it is called if not named."""
    return click.option(
        "-o",
        "--output",
        type=click.Path(path_type=Path, allow_dash=True),
        metavar="FILE",
        help=f"What to write, - for stdout. [default: {default}]",
    )
