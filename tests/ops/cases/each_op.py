"""One test for all cases of an op: alone, a case takes less time than a test costs."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable
from typing import Any

import pytest

from tests.ops.cases.page import op_of


def each_op(
    tries: Iterable[tuple[Any, ...]], *, every: int = 1
) -> pytest.MarkDecorator:
    """A test of each op, whose argument `tries` are those of the op.

    Args:
        tries: A case each, and what else a check is called with.
        every: Of the tries of an op that differ in nothing but their case, the first
            and each so many after it are ordinary; `make stress` has all of them.
    """
    by_op: defaultdict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for one in tries:
        by_op[op_of(one[0].name)].append(one)
    samples = {op: _sample(some, every) for op, some in by_op.items()}
    tests = [pytest.param(some, id=op) for op, some in samples.items()]
    tests += [
        pytest.param(some, id=f"{op}-all", marks=pytest.mark.stress)
        for op, some in by_op.items()
        if len(samples[op]) < len(some)
    ]
    return pytest.mark.parametrize("tries", tests)


def _sample(tries: Iterable[tuple[Any, ...]], every: int) -> list[tuple[Any, ...]]:
    seen: Counter[tuple[Any, ...]] = Counter()
    found = []
    for one in tries:
        if seen[one[1:]] % every == 0:
            found.append(one)
        seen[one[1:]] += 1
    return found


def try_all(tries: Collection[tuple[Any, ...]], check: Callable[..., None]) -> None:
    """Call `check` with each of `tries`.

    Raises:
        BaseExceptionGroup: What failed, each with its case.
    """
    failed = []
    for case, *others in tries:
        try:
            check(case, *others)
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - raised below
            error.add_note(f"with {' '.join([case.id, *map(str, others)])}")
            failed.append(error)
    if failed:
        raise BaseExceptionGroup(f"{len(failed)} of {len(tries)} fail", failed)
