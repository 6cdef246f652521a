"""``gradviz doctor``: works, and says why, where gradviz itself does not."""

import importlib
import sys
from collections.abc import Sequence
from itertools import groupby
from typing import Final

import click

from gradviz.cli.console.documents import print_json
from gradviz.cli.console.options import json_option
from gradviz.cli.doctor.health import Finding, Health, versions
from gradviz.render.words.text import clean

_SIGNS: Final[dict[Health, tuple[str, str | None]]] = {
    "ok": ("ok", "green"),
    "absent": ("--", None),
    "failed": ("NO", "red"),
}


@click.command("doctor")
@json_option
def command(as_json: bool) -> int:
    """Say whether gradviz works here, and what it works with.

    That is versions, NumPy's BLAS, GPUs, Graphviz, the terminal, the current folder.
    Exits with 1 if something is missing or broken that it cannot do without.

    Example:
        gradviz doctor --json
    """
    found = list(versions())
    if _is_fine(found):  # else the rest cannot even be imported
        found += importlib.import_module(
            "gradviz.cli.doctor.surroundings"
        ).surroundings()
    if as_json:
        document = [one._asdict() for one in found]
        fine = _is_fine(found)
        head = {"schema": "gradviz.doctor", "version": 1, "fine": fine}
        print_json({**head, "findings": document})
    else:
        _print(found)
    return int(not _is_fine(found))


def _is_fine(found: Sequence[Finding]) -> bool:
    return all(one.state != "failed" for one in found)


def _print(found: Sequence[Finding]) -> None:
    wide = max(len(one.name) for one in found)
    for about, together in groupby(found, lambda one: one.about):
        click.secho(about, bold=True)
        for one in together:
            sign, color = _SIGNS[one.state]
            told = clean(one.told + (f": {one.advice}" if one.advice else ""))
            line = f"  {click.style(sign, fg=color)}  {one.name:{wide}}  {told}"
            click.echo(line, file=sys.stdout)
