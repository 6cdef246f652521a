"""The last results that were kept, and what has become better or worse since.

`python -m benchmarks --keep` writes what it measures into ``results.json``; every run
says how it compares with what is there. Only ratios are kept, which were measured
within one run, and they are compared only with those of the same build of gradviz:
absolute times of two runs say more of the machine than of the program.
"""

import json
import platform
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

import gradviz
from benchmarks.timing import Result

PATH: Final = Path(__file__).with_name("results.json")

#: The same program, run twice on one machine, differs by that much.
NOISE: Final = 0.05


class Row(NamedTuple):
    """One ratio.

    Attributes:
        case: What was measured.
        contestant: Whose time it is.
        against: Whom the ratio refers to.
        build: Which Python, whether the core was compiled, and what time was counted.
        ratio: The best round over that of `against`.
        low: Lower quartile of the ratio round by round.
        high: Upper quartile.
        date: When, as ``2026-11-23``.
    """

    case: str
    contestant: str
    against: str
    build: str
    ratio: float
    low: float
    high: float
    date: str

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What must be the same in rows that are compared."""
        return self.case, self.contestant, self.against, self.build


def row(case: str, result: Result, *, own_time: bool) -> Row:
    """A result of now, and of this build."""
    version = ".".join(platform.python_version_tuple()[:2])
    build = f"Python {version}, {'compiled' if gradviz.compiled else 'not compiled'}"
    if own_time:
        build += ", processor time"
    figures = (round(one, 3) for one in (result.ratio, result.low, result.high))
    date = datetime.now(tz=UTC).date().isoformat()
    return Row(case, result.name, result.against, build, *figures, date)


def load(path: Path = PATH) -> list[Row]:
    """What was kept; nothing where there is no such file."""
    if not path.exists():
        return []
    return [Row(**one) for one in json.loads(path.read_text(encoding="utf-8"))]


def keep(rows: Iterable[Row], path: Path = PATH) -> None:
    """Keep these in place of those of the same cases and builds."""
    known = {one.key: one for one in load(path)}
    known.update({one.key: one for one in rows})
    lines = [json.dumps(one._asdict()) for _, one in sorted(known.items())]
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


def changes(kept: Iterable[Row], measured: Iterable[Row]) -> list[str]:
    """What has become worse or better than it was, beyond the noise; a line each.

    That is where the best rounds and the quartiles say so both: most rounds of now are
    beyond most of then.
    """
    before = {one.key: one for one in kept}
    lines = []
    for now in measured:
        then = before.get(now.key)
        if then is None:
            continue
        if min(now.ratio / then.ratio, now.low / then.high) > 1 + NOISE:
            word = "worse"
        elif max(now.ratio / then.ratio, now.high / then.low) < 1 - NOISE:
            word = "better"
        else:
            continue
        lines.append(
            f"{word}: {now.case} ({now.contestant} / {now.against}): "
            f"{then.ratio:.2f} on {then.date}, now {now.ratio:.2f}"
        )
    return sorted(lines, reverse=True)
