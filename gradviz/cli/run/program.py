"""A user's Python program: found, loaded and run as ``python`` would, in this process.

Nothing here knows of traces. Loading a program makes this process the program's:
``sys.argv``, ``sys.path[0]`` and ``__main__`` are changed and not changed back, since
threads and exit handlers of the program go on after its last line.
"""

import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import Final, NamedTuple

from gradviz.errors import INTERRUPTED, UserError


class ProgramNotFoundError(UserError):
    """There is no such program; ``python`` itself exits with 2 then, as Click does."""

    exit_code = 2


class Program(NamedTuple):
    """A compiled program.

    Attributes:
        code: Code to execute.
        attributes: Attributes of its ``__main__`` module: ``__file__`` and the like.
    """

    code: CodeType
    attributes: Mapping[str, object]


def load_script(path: str, args: Sequence[str]) -> Program:
    """The program of a file.

    Raises:
        ProgramNotFoundError: There is no such file, or it cannot be read.
        SyntaxError: It is no Python.
    """
    try:
        source = Path(path).read_bytes()
    except OSError as error:
        hint = "; for a package use -m" if isinstance(error, IsADirectoryError) else ""
        raise ProgramNotFoundError(
            f"cannot read script {path}: {error.strerror}{hint}"
        ) from error
    if path.endswith(".gvt"):
        raise ProgramNotFoundError(
            f"{path} is a trace, not a script; see it with 'gradviz show order {path}'"
        )
    _become([path, *args], str(Path(path).resolve().parent))
    absolute = str(Path(path).absolute())
    attributes = {
        "__file__": absolute,
        "__cached__": None,
        "__loader__": importlib.machinery.SourceFileLoader("__main__", absolute),
        "__package__": None,
        "__spec__": None,
    }
    return Program(_compile(source, absolute), attributes)


def load_string(source: str, args: Sequence[str]) -> Program:
    """The program of a string.

    Raises:
        SyntaxError: It is no Python.
    """
    _become(["-c", *args], "")
    attributes = {
        "__loader__": importlib.machinery.BuiltinImporter,
        "__package__": None,
        "__spec__": None,
    }
    return Program(_compile(source, "<string>"), attributes)


def load_module(name: str, args: Sequence[str]) -> Program:
    """The program of a module, or of a package's ``__main__``; imports its parents.

    Raises:
        ProgramNotFoundError: There is no such module.
        SyntaxError: It is no Python.
        BaseException: Whatever importing its parents raises.
    """
    _become(["-m", *args], str(Path.cwd()))
    spec = _find(name)
    if spec.submodule_search_locations is not None:
        spec = _find(f"{name}.__main__")
    # Loaders that can say so have `get_code`; there is no class they all derive from.
    get_code = getattr(spec.loader, "get_code", None)
    code = get_code(spec.name) if get_code is not None else None
    if code is None:
        raise ProgramNotFoundError(f"module {spec.name} has no Python code to run")
    sys.argv[0] = spec.origin or name
    attributes = {
        "__file__": spec.origin,
        "__cached__": spec.cached,
        "__loader__": spec.loader,
        "__package__": spec.parent,
        "__spec__": spec,
    }
    return Program(code, attributes)


def run(
    load: Callable[[], Program],
    before: Callable[[], None],
    failed: Callable[[BaseException], None] = lambda _: None,
) -> int:
    """Load a program, call `before`, run the program; its exit code as Python's.

    What the program raises is shown as Python would show it, after `failed` was called
    with it.

    Raises:
        ProgramNotFoundError: There is no such program.
        Exception: Whatever `before` raises; the program has not begun then.
    """
    try:
        program = load()
    except ProgramNotFoundError:
        raise
    except BaseException as error:  # noqa: BLE001 - SyntaxError, or a parent package's
        return _exit_code(error)
    before()
    try:
        _execute(program)
    except BaseException as error:  # noqa: BLE001 - KeyboardInterrupt and all others
        failed(error)
        return _exit_code(error)
    return 0


def _execute(program: Program) -> None:
    main = ModuleType("__main__")
    vars(main).update(program.attributes)
    vars(main)["__builtins__"] = sys.modules["builtins"]
    sys.modules["__main__"] = main
    exec(program.code, vars(main))


def _become(argv: list[str], first_path: str) -> None:
    sys.argv = argv
    if not sys.flags.safe_path:
        sys.path[0] = first_path


def _compile(source: str | bytes, filename: str) -> CodeType:
    try:
        return compile(source, filename, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        if getattr(error, "filename", None) is not None:
            raise
        # A null byte: ValueError before Python 3.11.4, and never with a place.
        raise SyntaxError(str(error), (filename, 1, 0, "")) from None


def _find(name: str) -> importlib.machinery.ModuleSpec:
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        # A parent that is missing is our error, what a parent imports is the user's.
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        spec = None
    if spec is None:
        raise ProgramNotFoundError(f"there is no module named {name}")
    return spec


def _exit_code(error: BaseException) -> int:
    """Return Python's exit code after `error` has reached its top and was shown."""
    if not isinstance(error, SystemExit):
        _show(error)
        return INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
    match error.code:
        case None:
            return 0
        case int():
            return error.code
        case message:
            print(message, file=sys.stderr)  # noqa: T201 - as Python does
            return 1


#: Folder of the code that watches PyTorch from inside of the program's calls.
_WATCHERS: Final = f"{Path(__file__).parents[2] / 'pytorch'}{os.sep}"


def _show(error: BaseException) -> None:
    """Print a traceback through ``sys.excepthook``, from the user's first frame on."""
    error.__traceback__ = _without_watchers(_without_runner(error.__traceback__))
    try:
        sys.excepthook(type(error), error, error.__traceback__)
    except Exception:  # noqa: BLE001 - a hook of the user's that fails hides nothing
        sys.__excepthook__(type(error), error, error.__traceback__)


def _without_runner(traceback: TracebackType | None) -> TracebackType | None:
    """Drop the outermost frames that are not the user's: the command's, importlib's."""
    ours = (str(Path(__file__).parent), "<frozen importlib")
    while traceback is not None and traceback.tb_frame.f_code.co_filename.startswith(
        ours
    ):
        traceback = traceback.tb_next
    return traceback


def _without_watchers(traceback: TracebackType | None) -> TracebackType | None:
    """Drop the frames that watch PyTorch: an interrupt may have come into one."""
    first = traceback
    while first is not None and _is_watcher(first):
        first = first.tb_next
    one = first
    while one is not None:
        while one.tb_next is not None and _is_watcher(one.tb_next):
            one.tb_next = one.tb_next.tb_next
        one = one.tb_next
    return first


def _is_watcher(traceback: TracebackType) -> bool:
    return traceback.tb_frame.f_code.co_filename.startswith(_WATCHERS)
