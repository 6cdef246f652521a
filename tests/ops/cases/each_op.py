"""One test for all cases of an op: alone, a case takes less time than a test costs."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from typing import Any

import pytest

from tests.ops.cases.page import op_of


def each_op(tries: Iterable[tuple[Any, ...]]) -> pytest.MarkDecorator:
    """A test of each op, whose argument `tries` are those of the op.

    Args:
        tries: A case each, and what else a check is called with.
    """
    by_op = defaultdict(list)
    for one in tries:
        by_op[op_of(one[0].name)].append(one)
    return pytest.mark.parametrize("tries", by_op.values(), ids=by_op.keys())


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
