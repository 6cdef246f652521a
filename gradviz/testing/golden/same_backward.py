"""`assert_same_backward`: a backward that no change may move unnoticed."""

import contextlib
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

from gradviz.errors import UserError

if TYPE_CHECKING:
    from gradviz.capture.session import Recording
    from gradviz.testing.golden.backward_record import GoldenPass

_Result = TypeVar("_Result")

#: Unless it is 0 or empty, golden files are written anew; ``--gradviz-update`` sets it.
UPDATE: Final = "GRADVIZ_UPDATE"

#: A failure tells so many changes.
_MAX_TOLD: Final = 40


@overload
def assert_same_backward(
    golden: str | os.PathLike[str], *, lines: bool = False
) -> contextlib.AbstractContextManager[None]: ...


@overload
def assert_same_backward(
    golden: str | os.PathLike[str],
    function: Callable[[], _Result],
    *,
    lines: bool = False,
) -> _Result: ...


def assert_same_backward(
    golden: str | os.PathLike[str],
    function: Callable[[], Any] | None = None,
    *,
    lines: bool = False,
) -> Any:
    """Check that a block, or a function, runs backward as a golden file says.

    For example::

        with gradviz.testing.assert_same_backward("golden/mlp.txt"):
            loss = model(x).sum()
            loss.backward()

    Compared are the nodes of each backward pass, of PyTorch's and of ours: their order,
    the shapes and dtypes of their inputs, devices, edges, saved bytes, hooks, and waits
    of the host and of streams. Times, ids, and names of modules and parameters are not,
    nor is an order that timing alone explains. The forward belongs into the block, for
    what our own nodes save is seen when they are made.

    ``pytest --gradviz-update``, or ``GRADVIZ_UPDATE=1`` in the environment, writes the
    file instead.

    Args:
        golden: The file; a relative path starts at the current folder.
        function: Function to run; None returns a context manager for a ``with`` block.
        lines: Compare the lines of the program that made the nodes, too.

    Returns:
        The function's result, or the context manager.

    Raises:
        AssertionError: The backward is another one, there is no golden file, or no
            backward ran.
        UserError: The file is no golden record, is damaged, empty, of a newer version
            or has merge conflicts; or it cannot be read or written; or PyTorch's passes
            cannot be recorded.
    """
    __tracebackhide__ = True
    block = _ComparedBlock(Path(golden).absolute(), str(golden), with_lines=lines)
    if function is None:
        return block
    with block:
        return function()


class _ComparedBlock:
    """Compares a block's backward passes with a golden file, or writes it.

    A class, and not a generator with `contextlib.contextmanager`, whose frames would
    stand between the test and the message.
    """

    def __init__(self, path: Path, name: str, *, with_lines: bool) -> None:
        self._path, self._name, self._with_lines = path, name, with_lines
        self._golden: tuple[GoldenPass, ...] | None = None
        self._recording: Recording | None = None

    def __enter__(self) -> None:
        __tracebackhide__ = True
        if os.environ.get(UPDATE, "") in {"", "0"}:
            self._golden = _read(self._path, self._name)
        # Loaded when it is called: importing `gradviz.testing` loads nothing of traces.
        session = importlib.import_module("gradviz.capture.session")
        stacks = "leaf" if self._with_lines else "none"
        recording = session.record(source="torch if imported", stacks=stacks)
        recording.mark(self._name)
        self._recording = recording

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        __tracebackhide__ = True
        assert self._recording is not None
        self._recording.close()
        if error is not None:
            return
        found = _record_of(self._recording, self._name, with_lines=self._with_lines)
        if self._golden is None:
            _write(self._path, self._name, _golden_file().golden_text(found))
        elif found != self._golden:
            _check_same(self._golden, found, self._name)


def _golden_file() -> Any:  # noqa: ANN401 - a module, loaded when it is needed
    return importlib.import_module("gradviz.testing.golden.golden_file")


def _read(path: Path, name: str) -> "tuple[GoldenPass, ...]":
    """Read a golden file.

    Raises:
        AssertionError: There is none.
        UserError: It cannot be read.
    """
    __tracebackhide__ = True
    golden_file = _golden_file()
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise AssertionError(
            f"there is no golden record {name} (looked for {path}): write it with "
            f"{golden_file.ACCEPT}"
        ) from None
    except UnicodeDecodeError:
        raise golden_file.GoldenFileError(
            f"{name} is no golden record of a backward: it is not a string"
        ) from None
    except OSError as error:
        raise UserError(
            f"cannot read the golden record {name}: {error.strerror}"
        ) from None
    record: tuple[GoldenPass, ...] = golden_file.parse_golden(text, name)
    return record


def _record_of(
    recording: "Recording", name: str, *, with_lines: bool
) -> "tuple[GoldenPass, ...]":
    """Return the record of a block's passes.

    Raises:
        AssertionError: No backward ran, or not all of it was seen.
        UserError: PyTorch's passes were not recorded, or events are missing.
    """
    __tracebackhide__ = True
    module = importlib.import_module("gradviz.testing.golden.backward_record")
    if "torch" in sys.modules and recording.problem:
        raise UserError(f"{name}: {recording.problem}")
    trace = recording.trace
    if not trace.losses.is_complete:
        lost = "; ".join(trace.losses.in_words())
        raise UserError(f"{name}: the recording of the block is incomplete: {lost}")
    thread = int(trace.columns["mark"]["thread"][0])
    try:
        found: tuple[GoldenPass, ...] = module.backward_record(
            trace, thread, with_lines=with_lines
        )
    except module.NothingRecordedError as error:
        raise AssertionError(
            f"nothing to compare with the golden record {name}: {error}"
        ) from None
    return found


def _write(path: Path, name: str, text: str) -> None:
    """Write a golden file, whole or not at all.

    Raises:
        UserError: It cannot be written.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_text(text, encoding="utf-8", newline="\n")
        beside.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise UserError(
            f"cannot write the golden record {name}: {error.strerror}"
        ) from None


def _check_same(
    golden: "Sequence[GoldenPass]", found: "Sequence[GoldenPass]", name: str
) -> None:
    """Check that two records, which are not equal, differ in names alone.

    Raises:
        AssertionError: They differ in more.
    """
    __tracebackhide__ = True
    record_changes = importlib.import_module("gradviz.testing.golden.record_changes")
    accept = _golden_file().ACCEPT
    changes = record_changes.record_changes(golden, found)
    if not changes.lines:
        return
    if changes.is_another_program:
        raise AssertionError(
            f"the golden record {name} is of another program: it has too little in "
            f"common with this backward. Write it anew with {accept}"
        )
    more = len(changes.lines) - _MAX_TOLD
    hint = (
        "  What was saved is unknown of nodes that were made before the block: run the "
        "forward inside of it."
    )
    raise AssertionError(
        "\n".join(
            [
                f"the backward is not that of the golden record {name}:",
                *changes.lines[:_MAX_TOLD],
                *([f"  and {more:,} more"] if more > 0 else []),
                *([hint] if changes.is_unseen else []),
                f"To accept this: {accept}",
            ]
        )
    )
