"""The root command, and what becomes of errors: one line and an exit code."""

import contextlib
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NoReturn

import click

from gradviz._version import __version__
from gradviz.cli.console.lazy import Entry, LazyGroup
from gradviz.cli.console.notes import note, plain_streams
from gradviz.errors import INTERRUPTED, UserError

CLICKS_OWN: Final = (click.ClickException, click.exceptions.Exit, click.Abort)


class Root(LazyGroup):
    """The group of all commands; turns every error into one line on stderr.

    A command returns None, or the exit code of the process.
    """

    entries = {  # noqa: RUF012 - declared by LazyGroup
        "run": Entry(
            "gradviz.cli.run.command",
            "Run a Python program and record its backward passes.",
        ),
        "attach": Entry(
            "gradviz.cli.commands.attach", "Record a program that is already running."
        ),
        "show": Entry("gradviz.cli.show", "Show a trace in the terminal."),
        "explain": Entry(
            "gradviz.cli.commands.explain",
            "Explain why a node ran when it did, or did not run.",
        ),
        "replay": Entry(
            "gradviz.cli.commands.replay", "Play a backward pass, event by event."
        ),
        "render": Entry("gradviz.cli.render.group", "Draw a trace into a file."),
        "view": Entry("gradviz.cli.commands.view", "Show traces in a browser."),
        "diff": Entry(
            "gradviz.cli.commands.diff",
            "Compare two backward passes, of two traces or of one.",
        ),
        "simulate": Entry(
            "gradviz.cli.commands.simulate",
            "Estimate the time of a pass after a change.",
        ),
        "check": Entry("gradviz.cli.commands.check", "Find what is wrong in a trace."),
        "doctor": Entry(
            "gradviz.cli.doctor.command",
            "Check that gradviz works here, and list what it finds.",
        ),
        "export": Entry(
            "gradviz.cli.commands.export", "Write a trace for other tools."
        ),
        "merge": Entry(
            "gradviz.cli.commands.merge", "Merge traces of several processes into one."
        ),
    }

    def main(
        self,
        args: Sequence[str] | None = None,
        *_: object,
        obj: Path | None = None,
        **__: object,
    ) -> NoReturn:
        """Run the command line on `args`, or on ``sys.argv``, and exit.

        Args:
            args: Arguments after the name of the program.
            obj: The trace that is meant where none is named.
        """
        _open_closed_streams()
        try:
            code = super().main(args, "gradviz", standalone_mode=False, obj=obj)
            sys.stdout.flush()  # an error is told here, not as the interpreter ends
        except click.Abort:
            code = INTERRUPTED
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()  # the help, to stderr
            code = error.exit_code
        except click.ClickException as error:
            note(_one_line(error))
            code = error.exit_code
        except UserError as error:
            note(str(error))
            code = error.exit_code
            if isinstance(error.__cause__, OSError):
                _give_up_stdout()
        except BrokenPipeError:  # the reader of our output has left
            _give_up_stdout()
            code = 1  # as Click and rich do
        except OSError as error:  # a full disk under stdout takes not even the help
            note(str(error))
            _give_up_stdout()
            code = 1
        sys.exit(code)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; every error of gradviz's leaves as a `UserError`."""
        try:
            return super().invoke(ctx)
        except (*CLICKS_OWN, BrokenPipeError):
            raise
        except Exception as error:
            if ctx.params["debug"]:
                traceback.print_exc()
            if isinstance(error, UserError):
                raise
            raise UserError(_sentence(error)) from error


def _open_closed_streams() -> None:
    """Let what goes to a stream that was closed before we began go to nobody.

    Python has None in its place, and the first file that is opened gets its number.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            nobody = Path(os.devnull).open(mode, encoding="utf-8")  # noqa: SIM115
            setattr(sys, name, nobody)


def _give_up_stdout() -> None:
    """Let what could not be written go to nobody.

    Else the interpreter tries again on its way out: it complains, and some versions
    exit with a code of their own.
    """
    with contextlib.suppress(OSError):
        sys.stdout.flush()  # what can be written is
    with contextlib.suppress(OSError):  # it need not be a file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError):
        return str(error)
    return (
        f"internal error: {type(error).__name__}: {error} "
        f"(a defect of gradviz; 'gradviz --debug ...' shows where)"
    )


def _one_line(error: click.ClickException) -> str:
    message = error.format_message()
    if isinstance(error, click.UsageError) and error.ctx is not None:
        message = f"{message.rstrip('.')} (see '{error.ctx.command_path} --help')"
    return message


HELP: Final = """See what a backward pass does, and why.

Record a program, of PyTorch or of gradviz, then ask the trace:

\b
  gradviz run train.py       record the backward passes
  gradviz show summary       see where the time went
  gradviz render timeline    draw who ran what, and when
  gradviz explain NODE       learn why a node ran when it did
  gradviz view               look at all of it in a browser
"""


@click.group(
    cls=Root,
    help=HELP,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "auto_envvar_prefix": "GRADVIZ",
    },
)
@click.version_option(
    __version__, "-V", "--version", prog_name="gradviz", message="%(prog)s %(version)s"
)
@click.option("--debug", is_flag=True, help="Show tracebacks of gradviz's own errors.")
def gradviz(debug: bool) -> None:
    """The root of the command line; `HELP` is its text."""
    del debug  # read by Root.invoke
    context = click.get_current_context()
    if context.invoked_subcommand != "run":  # the streams are the program's there
        context.with_resource(plain_streams())
