"""A program: odd values where others are expected, and no call may end the process.

Run as ``python -m tests.faults.odd_values WHAT FIRST STEP``; prints a `Report`. WHAT is

* ``fields``: sets each field of each object that a small program has of the compiled
  modules, before its backward and inside of it;
* ``calls``: calls all that the compiled modules define, methods also of objects that
  were never initialized, with random arguments.

FIRST and STEP say which of the trials are made. They run in forks, which note what they
are about to do: a crash ends a fork, and is a failure with a name.
"""

import functools
import gc
import importlib
import inspect
import json
import mmap
import os
import random
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

import gradviz as gv
from gradviz.engine import Edge, Engine, InputMetadata, Node, set_default_engine

_PACKAGE: Final = Path(gv.__file__).parent
MODULES: Final = [
    ".".join(path.relative_to(_PACKAGE.parent).with_suffix("").parts)
    for path in sorted(_PACKAGE.rglob("*.pxd"))
]

#: A trial that takes longer waits for something that its odd value has undone.
_TRIAL_SECONDS: Final = 3.0

#: How often each function is called, and with at most so many arguments.
_NUM_CALLS: Final = 40
_MAX_ARGUMENTS: Final = 6

#: Deletes a field, in place of a value of it.
_DELETED: Final = object()


@dataclass
class Report:
    """Outcome of a campaign.

    Attributes:
        num_trials: How many there were.
        num_refused: How many of them raised.
        num_hung: How many waited forever, which is no failure.
        failures: The trials that ended the process, with the signal.
    """

    num_trials: int = 0
    num_refused: int = 0
    num_hung: int = 0
    failures: list[str] = field(default_factory=list)


class Spiteful:
    """Raises whatever is asked of it."""

    def __getattr__(self, name: str) -> Any:
        raise ZeroDivisionError(name)

    def __iter__(self) -> Iterator[Any]:
        raise ZeroDivisionError("iter")

    def __len__(self) -> int:
        return -1  # noqa: PLE0303 - on purpose

    def __eq__(self, other: object) -> bool:
        raise ZeroDivisionError("eq")

    __hash__ = None  # type: ignore[assignment]


class Doubled(gv.autograd.Function):
    """A custom function."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * 2 + 0 * ctx.saved_tensors[0]


class Own(Node):
    """A node of the user's own."""

    def apply(self, *grads: Any) -> Any:
        return grads


class World:
    """A program with something of everything; a backward with an engine of its own."""

    def __init__(self) -> None:
        set_default_engine(Engine())
        self.x = x = gv.tensor([1.0, 2.0], requires_grad=True)
        self.inside: Callable[[], object] = lambda: None
        y = Doubled.apply(x * x) + x.reshape(2, 1).sum(1)
        y.register_hook(lambda grad: self.inside() and None)
        self.far = gv.tensor([1.0, 2.0], device="sim:0", requires_grad=True)
        self.loss = y.exp().sum() + (self.far * self.far).sum().to("cpu")
        self.own = Own([Edge(y.grad_fn, 0)], [InputMetadata((2,), np.dtype("f4"))])

    def run(self) -> None:
        """Use it all; what is odd may raise anywhere."""
        for use in (
            lambda: self.loss.backward(retain_graph=True),
            lambda: gv.autograd.grad(self.loss, [self.x], create_graph=True),
            lambda: Engine().execute([Edge(self.own, 0)], [np.ones(2, np.float32)]),
            self.loss.backward,
            lambda: (self.x * self.x.grad).sum().item(),
            lambda: (self.far + self.far).sum().item(),
        ):
            _tried(use)


def odd_values() -> list[Any]:
    """Values that only chance would give."""
    endless: list[Any] = []
    endless.append(endless)
    x = gv.ones(2, requires_grad=True)
    node = (x * x).grad_fn
    assert node is not None
    return [
        *(None, True, 0, -1, 7, 2**31, 2**64, -(2**70), 1.5, float("nan"), 1j),
        *("", "text", b"", (), (None,), (None, None), [None], [], {}, {1: 2}, set()),
        *(endless, object(), object, int, len, lambda *_: None, ValueError("odd")),
        *(iter([1]), Spiteful(), _DELETED, Ellipsis, range(3), np.float32(1)),
        *(np.ones(2), np.zeros(0, object), np.dtype("f4"), x, Edge(None)),
        *(node, Node.__new__(Node), type(node)(), Edge.__new__(Edge)),
        *((Edge(None),), (Edge(node, 9),), (InputMetadata(None, None),)),  # type: ignore[arg-type]
    ]


def classes() -> set[type]:
    """Return all classes that the compiled modules define."""
    modules = map(importlib.import_module, MODULES)
    return {
        one
        for module in modules
        for one in vars(module).values()
        if isinstance(one, type) and one.__module__ == module.__name__
    }


def specimens(kinds: set[type]) -> dict[type, Any]:
    """The newest object of each of these classes that there is here."""
    found: dict[type, Any] = {}
    for one in gc.get_objects():
        if not kinds.isdisjoint(type(one).__mro__):
            for part in (*gc.get_referents(one), one):
                kind = next((cls for cls in type(part).__mro__ if cls in kinds), None)
                if kind is not None:
                    found[kind] = part
    return found


def fields(cls: type) -> list[str]:
    """The names under which objects of a class may be given values."""
    found = {name: getattr(cls, name, None) for name in dir(cls)}
    return sorted(
        name
        for name, one in found.items()
        if inspect.isdatadescriptor(one)
        and not name.startswith("__")
        and getattr(one, "fset", one) is not None
    )


def _tried(function: Callable[..., Any], *arguments: Any) -> bool:
    """Call a function; returns whether it raised."""
    try:
        function(*arguments)
    except BaseException:  # noqa: BLE001 - SystemExit too: the process goes on
        return True
    return False


@dataclass(frozen=True)
class Trial:
    """One call that may go wrong.

    Attributes:
        name: What a failure is called.
        make: Makes it; returns whether something raised.
    """

    name: str
    make: Callable[[], bool]


def trials_with_fields() -> list[Trial]:
    """Each odd value in each field."""
    with tempfile.NamedTemporaryFile() as file:
        _in_fork(lambda: Path(file.name).write_text(json.dumps(_all_fields())))
        found = json.loads(file.read())
    return [
        Trial(
            f"{class_name}.{name} = odd value {index}, {moment} the backward",
            functools.partial(_set_field, moment, class_name, name, index),
        )
        for moment, class_name, name in found
        for index in range(len(odd_values()))
    ]


def _all_fields() -> list[tuple[str, str, str]]:
    """Moment, class and name of each field of a small program."""
    kinds, world = classes(), World()
    known = {("before", cls) for cls in specimens(kinds)}
    world.inside = lambda: known.update(("inside", cls) for cls in specimens(kinds))
    world.loss.backward()
    return sorted(
        (moment, _named(cls), name) for moment, cls in known for name in fields(cls)
    )


def _named(cls: type) -> str:
    return f"{cls.__module__}.{cls.__name__}"


def _set_field(moment: str, class_name: str, name: str, index: int) -> bool:
    world, value = World(), odd_values()[index]
    refused = []

    def change() -> None:
        for cls, one in specimens(classes()).items():
            if _named(cls) == class_name:
                if value is _DELETED:
                    refused.append(_tried(delattr, one, name))
                else:
                    refused.append(_tried(setattr, one, name, value))
                for use in (repr, hash, bool, list):
                    _tried(use, one)

    if moment == "inside":
        world.inside = change
    else:
        change()
    world.run()
    del world
    gc.collect()
    return True in refused


def trials_with_calls() -> list[Trial]:
    """Calls of all functions, classes and methods."""
    return [
        Trial(f"{where}, call {index}", functools.partial(_call, where, index))
        for where in _callables()
        for index in range(_NUM_CALLS)
    ]


def _callables() -> list[str]:
    """Functions as ``module:name``, methods as ``module:class:name``."""
    found = []
    for module_name in MODULES:
        for name, one in vars(importlib.import_module(module_name)).items():
            if getattr(one, "__module__", None) != module_name or not callable(one):
                continue
            found.append(f"{module_name}:{name}")
            if isinstance(one, type):
                methods = [key for key in dir(one) if callable(getattr(one, key, None))]
                inherited = set(dir(object)) - {"__init__"}
                found += [
                    f"{module_name}:{name}:{key}"
                    for key in methods
                    if key not in inherited
                ]
    return found


def _call(where: str, index: int) -> bool:
    """Call it as the seed says: `index`, and the name."""
    chance = random.Random(f"{where} {index}")
    module_name, name, *method = where.split(":")
    function = getattr(importlib.import_module(module_name), name)
    world = World()
    values = [*odd_values(), *specimens(classes()).values()]
    values += [_bare(cls) for cls in classes()]
    values = [one for one in values if one is not _DELETED]
    if method:
        alike = [one for one in values if function in type(one).__mro__]
        owner = chance.choice([*alike, _bare(function)])
        function = getattr(owner, method[0], None)
    arguments = chance.choices(values, k=chance.randint(0, _MAX_ARGUMENTS))
    has_raised = _tried(function, *arguments)
    if chance.random() < 0.1:
        world.run()
    return has_raised


def _bare(cls: type) -> Any:
    """An object that was never initialized, or the class if it can have none."""
    try:
        return cls.__new__(cls)
    except Exception:  # noqa: BLE001 - the class's own
        return cls


def run(trials: Sequence[Trial]) -> Report:
    """Make all trials, each in the process of the one before unless that ended."""
    report = Report(num_trials=len(trials))
    done = mmap.mmap(-1, 16)  # the next trial, and how many raised
    while (begin := int.from_bytes(done[:8], "little")) < len(trials):
        status = _in_fork(lambda: _make(trials, begin, done))
        now = int.from_bytes(done[:8], "little")
        if status == 0:
            continue
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) in _STUCK:
            report.num_hung += 1
        else:
            how = os.waitstatus_to_exitcode(status)
            report.failures.append(f"{trials[now].name}: exit code {how}")
        done[:8] = (now + 1).to_bytes(8, "little")
    report.num_refused = int.from_bytes(done[8:], "little")
    return report


#: Ended by us, not by a fault of its own.
_STUCK: Final = {signal.SIGALRM, signal.SIGKILL}

#: A fork makes so many trials, for what is left of one may disturb the next.
_TRIALS_PER_FORK: Final = 30


def _make(trials: Sequence[Trial], begin: int, done: mmap.mmap) -> None:
    for number in range(begin, min(begin + _TRIALS_PER_FORK, len(trials))):
        done[:8] = number.to_bytes(8, "little")
        signal.setitimer(signal.ITIMER_REAL, _TRIAL_SECONDS)  # its signal ends us
        has_raised = _has_raised(trials[number])
        raised = int.from_bytes(done[8:], "little") + has_raised
        done[:] = (number + 1).to_bytes(8, "little") + raised.to_bytes(8, "little")


def _has_raised(trial: Trial) -> bool:
    try:
        return trial.make()
    except BaseException:  # noqa: BLE001 - such as SystemExit, or what a trial before broke
        return True


def _in_fork(work: Callable[[], None]) -> int:
    """Do it in a fork that shows and reads nothing; returns how that ended."""
    process = os.fork()
    if process:
        return os.waitpid(process, 0)[1]
    try:
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):
            os.dup2(nowhere, descriptor)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        work()
    except BaseException:  # noqa: BLE001 - of the campaign itself: a failure, too
        os._exit(1)
    os._exit(0)


def main() -> None:
    what, first, step = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    make = {"fields": trials_with_fields, "calls": trials_with_calls}[what]
    classes()  # imports what forks need
    gc.freeze()  # specimens are of the small programs
    trials = make()[first::step]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        report = run(trials)
        os.chdir("/")
    json.dump(vars(report), sys.stdout)
    sys.stdout.flush()
    os._exit(0)  # devices' threads may wait for what is gone


if __name__ == "__main__":
    main()
