"""The lines of the program that make PyTorch's nodes, kept by PyTorch itself.

Note [Lines by anomaly mode]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~
In anomaly mode each node that is made, on any thread, gets a stack: PyTorch's C++ calls
one Python function, `torch.fx.traceback.format_stack`, and keeps what it returns in
`node.metadata["traceback_"]`. That function is slow: it formats the whole stack. A
recording turns the mode on, without its check for NaN, and has the function return one
line, or two (see Note [Two lines] in `location`), found by looking at code objects.
Nothing else hears of every node: hooks for modules miss functional calls, a mode for
functions costs ten times as much, and only some nodes save tensors.

The program must not notice:

- `torch.is_anomaly_enabled` and its two relatives are replaced. They say and set what
  the program wants. While it wants anomaly mode, PyTorch's own function makes the
  stacks, and frames of gradviz are left out of them.
- The mode is off while a pass runs that is watched, but for modules that run inside of
  it, as those do that a checkpoint computes again. Otherwise an error of a node would
  come with a warning that prints its stack, and one of a change in place with another
  hint.
- Whoever reads a node takes its line out of the metadata, before the node runs.
- Where PyTorch's compiler traces a graph, it keeps stacks of its own.

What remains is a key in the metadata of nodes that no pass has reached.
Source: torch/csrc/autograd/function.h, Node; torch/csrc/autograd/engine.cpp,
GraphTask::set_exception_without_signal; python_anomaly_mode.cpp,
PyAnomalyMetadata::store_stack.
"""

from collections.abc import Callable, Hashable
from pathlib import Path
from sys import _getframe
from types import CodeType, FrameType
from typing import Any, Final, TypeAlias

from gradviz.locks import SafeRLock
from gradviz.pytorch.compiler import Compiler
from gradviz.pytorch.nodes.graph_reader import KeptLine
from gradviz.trace.reporting.location import (
    THE_PROGRAMS,
    Locations,
    Stacks,
    lines_of,
    owner_of,
)

_NAME: Final = "format_stack"

_PACKAGE: Final = Path(__file__).parents[2]

#: An entry of a stack begins so if it is a frame of this package: the one that calls
#: PyTorch's function that runs a backward, and the one that keeps the stack.
_OURS: Final = f'  File "{Path(__file__).parents[1]}/'

#: Frames up to this one are those of Python and ``gradviz run``, and below the program.
_RUNNER: Final = f'  File "{_PACKAGE / "cli" / "run" / "program.py"}"'

#: The functions by which a program asks for anomaly mode, and learns of it.
_IS_ENABLED: Final = "is_anomaly_enabled"
_CHECKS_NAN: Final = "is_anomaly_check_nan_enabled"
_SET_ENABLED: Final = "set_anomaly_enabled"

#: Maximum number of lines remembered.
_MAX_KNOWN: Final = 100_000

#: A line, and the code that it is in.
_KnownLine: TypeAlias = tuple[KeptLine, list[CodeType]]

#: Lines by the ids of their code and the places in it.
_KnownLines: TypeAlias = dict[tuple[int, ...], _KnownLine]


class ForwardLines:
    """Has PyTorch keep a line in each node; see Note [Lines by anomaly mode].

    Args:
        torch: The module.
        of_stacks: The module `torch.fx.traceback`.
        compiler: Keeps Dynamo from compiling the replacements.
    """

    def __init__(self, torch: Any, of_stacks: Any, compiler: Compiler) -> None:  # noqa: ANN401
        self._torch = torch
        self._of_stacks = of_stacks
        self._compiler = compiler
        self._stack_of_pytorch: Callable[[], list[str]] = getattr(of_stacks, _NAME)
        names = (_IS_ENABLED, _CHECKS_NAN, _SET_ENABLED)
        self._original = {name: getattr(torch, name) for name in names}
        self._replaced: dict[str, Any] = {}
        # Its holder may run finalizers, which may end a recording.
        self._lock = SafeRLock()
        #: Program's wish for anomaly mode, and for its check for NaN. Guarded by the
        #: lock, as are the fields that follow.
        self._wanted = False, True
        #: ``none``, ``leaf`` or ``full``; see `Scope.stacks`.
        self._level = "none"
        #: Passes that are under way, and modules that run inside of one.
        self._passes: set[Hashable] = set()
        self._modules: set[Hashable] = set()
        #: The level while gradviz finds the lines, and ``none`` while PyTorch's own
        #: function makes the stacks. Changed with the lock held.
        self._finds = "none"
        self._leaves: Locations[str] = Locations(lambda text: text)
        self._stacks: Stacks[str] = Stacks(lambda text: text)
        self._line_of_caller = self._line_finder()
        compiler.skips(self._line_of_caller, type(self)._set_by_program)

    def install(self, level: str) -> None:
        """Start keeping lines, unless other code replaced one of these functions."""
        with self._lock:
            if getattr(self._of_stacks, _NAME) is self._stack_of_pytorch:
                setattr(self._of_stacks, _NAME, self._line_of_caller)
            is_free = all(
                getattr(self._torch, name) is original
                for name, original in self._original.items()
            )
            if level != "none" and is_free:
                self._wanted = self._asked_of_pytorch()
                self._replace()
                self._level = level
            self._apply()

    def remove(self) -> None:
        """Put PyTorch's functions back, and the mode as the program wants it."""
        with self._lock:
            if getattr(self._of_stacks, _NAME) is self._line_of_caller:
                setattr(self._of_stacks, _NAME, self._stack_of_pytorch)
            if self._level != "none":
                self._level = "none"
                self._apply()
                for name, ours in self._replaced.items():
                    if getattr(self._torch, name) is ours:
                        setattr(self._torch, name, self._original[name])
                # From now on nobody says what the program wants: a pass that ends late,
                # or a recording without lines, must not bring back what it wanted once.
                self._replaced = {}
            self._passes.clear()
            self._modules.clear()

    def are_kept(self) -> bool:
        """Tell if nodes get lines, by gradviz or by the program's own anomaly mode."""
        return self._level != "none"

    def pass_begins(self, one: Hashable) -> None:
        """No lines are kept until this pass has ended."""
        with self._lock:
            self._passes.add(one)
            self._apply()

    def pass_ends(self, one: Hashable) -> None:
        """Undo `pass_begins`; does nothing the second time."""
        with self._lock:
            self._passes.discard(one)
            self._apply()

    def module_begins(self, one: Hashable) -> None:
        """A module runs on a thread that may be inside of a pass: it makes nodes."""
        if self._passes:
            with self._lock:
                self._modules.add(one)
                self._apply()

    def module_ends(self, one: Hashable) -> None:
        """Undo `module_begins`."""
        if self._modules:
            with self._lock:
                self._modules.discard(one)
                self._apply()

    def _apply(self) -> None:
        self._finds = "none" if self._wanted[0] else self._level
        is_wanted, checks_nan = self._wanted
        if self._level != "none" and not is_wanted:
            is_wanted = not self._passes or bool(self._modules)
            self._original[_SET_ENABLED](is_wanted, False)
        elif self._replaced:
            self._original[_SET_ENABLED](is_wanted, checks_nan)

    def _asked_of_pytorch(self) -> tuple[bool, bool]:
        original = self._original
        return original[_IS_ENABLED](), original[_CHECKS_NAN]()

    def _replace(self) -> None:
        def is_anomaly_enabled() -> bool:
            return self._wanted[0]

        def is_anomaly_check_nan_enabled() -> bool:
            return self._wanted[1]

        def set_anomaly_enabled(*args: Any, **kwargs: Any) -> None:  # noqa: ANN401
            self._set_by_program(*args, **kwargs)

        self._replaced = {
            _IS_ENABLED: is_anomaly_enabled,
            _CHECKS_NAN: is_anomaly_check_nan_enabled,
            _SET_ENABLED: set_anomaly_enabled,
        }
        for name, ours in self._replaced.items():
            if name != _SET_ENABLED:
                # Dynamo asks while it traces, and takes the answer for a constant.
                vars(ours)["_dynamo_marked_constant"] = True
            setattr(self._torch, name, ours)
        self._compiler.skips(set_anomaly_enabled)

    def _set_by_program(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        with self._lock:
            self._original[_SET_ENABLED](*args, **kwargs)
            self._wanted = self._asked_of_pytorch()
            self._apply()

    def _line_finder(self) -> Callable[[], list[str]]:
        """Return the replacement of PyTorch's function. Any thread."""
        of_stacks, stack_of_pytorch = self._of_stacks, self._stack_of_pytorch
        call, with_stack = self._compiler.call, self._with_stack
        owners: dict[str, int] = {}
        known: _KnownLines = {}
        own_frame = _own_frame_finder(owners, self._compiler)
        nowhere = _kept_line("")

        # Called for each node, so the loop is written out, and calls only functions in
        # C once a line is known: Dynamo looks at frames of Python, except at those of
        # functions that it was told to skip.
        def line_of_caller() -> list[str]:
            if self._finds == "none" or of_stacks.should_preserve_node_meta:
                return call(of_program, stack_of_pytorch())
            if self._finds == "full":
                return call(with_stack)
            frame: FrameType | None = _getframe(1)
            while frame is not None:
                try:  # cheaper, for many frames, than to look if each is known
                    while frame is not None and not (
                        owner := owners[frame.f_code.co_filename]
                    ):
                        frame = frame.f_back
                    break
                except KeyError:
                    assert frame is not None
                    owners[frame.f_code.co_filename] = call(owner_of, frame)
            if frame is None:
                return nowhere
            key: tuple[int, ...] = id(frame.f_code), frame.f_lasti
            own = None if owner == THE_PROGRAMS else own_frame(frame)
            if own is not None:
                key += id(own.f_code), own.f_lasti
            found = known.get(key)
            if found is None:
                found = call(_remember, known, key, frame, own)
            return found[0]

        return line_of_caller

    def _with_stack(self) -> KeptLine:
        return _kept_line(self._leaves.of_caller(), self._stacks.of_caller())


def _own_frame_finder(
    owners: dict[str, int], compiler: Compiler
) -> Callable[[FrameType | None], FrameType | None]:
    """Return a function that finds the innermost frame of the program itself.

    Args:
        owners: Owners of the files that were looked at; see `location.owner_of`.
        compiler: Keeps Dynamo from compiling it.
    """
    call = compiler.call

    def own_frame(frame: FrameType | None) -> FrameType | None:
        while frame is not None:
            try:  # cheaper, for many frames, than to look if each is known
                while (
                    frame is not None
                    and owners[frame.f_code.co_filename] != THE_PROGRAMS
                ):
                    frame = frame.f_back
                break
            except KeyError:
                assert frame is not None
                owners[frame.f_code.co_filename] = call(owner_of, frame)
        return frame

    compiler.skips(own_frame)
    return own_frame


def _remember(
    known: _KnownLines, key: tuple[int, ...], frame: FrameType, own: FrameType | None
) -> _KnownLine:
    """Keep the line of a frame, and its code, so that nothing else gets its id.

    Args:
        known: Lines kept so far, to which it is added.
        key: Key of the line.
        frame: The innermost outside of PyTorch.
        own: If that is a library's, the innermost of the program itself.
    """
    if len(known) >= _MAX_KNOWN:
        known.clear()
    frames = [frame] if own is None else [frame, own]
    found = known[key] = _kept_line(lines_of(frames)), [one.f_code for one in frames]
    return found


def _kept_line(text: str, stack: str = "") -> KeptLine:
    line = KeptLine()
    line.text, line.stack = text, stack
    return line


def of_program(stack: list[str]) -> list[str]:
    """Return the entries of a stack that it would have without gradviz.

    Args:
        stack: Entries as `traceback.format_list` makes them, the innermost last.
    """
    below = [index for index, one in enumerate(stack) if one.startswith(_RUNNER)]
    first = below[-1] + 1 if below else 0
    return [one for one in stack[first:] if not one.startswith(_OURS)]
