"""Frames: a checkpoint's replacement for its function's saved tensors.

Note [Placeholders]
~~~~~~~~~~~~~~~~~~~
While the function runs for the first time, each tensor that an op wants to save is
replaced by a `Placeholder`, and dropped. The first placeholder that a backward asks for
its tensor has the function run again, from arguments that were kept. That second run
saves as many tensors, in the same order, and each goes into the placeholder of its
number. A placeholder gives its tensor away once and forgets it, so that no tensor lives
longer than it is needed, whether the graph is kept or not (rule 4 of PyTorch).

Everything is kept by run: the pass that wants it, and the thread that works for it. If
devices share a checkpoint, each of their threads computes what it needs itself; a lock
around the user's function could wait for a thread that waits for the lock.

Placeholders are owned by the nodes that saved them. One whose node is gone, because a
backward inside the function already freed it, gets nothing (rule 6).

The arguments are saved as an op would save them. In a nested checkpoint, they are
placeholders of the outer one, so asking the inner one for a tensor runs both.

Source: torch/utils/checkpoint.py, _CheckpointFrame, NOTE [ Nestable Checkpoint ].
"""

import threading
import weakref
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, Self

from gradviz.autograd.current_pass import current_graph_task_id
from gradviz.autograd.grad_mode import enable_grad
from gradviz.autograd.saved_tensors import saved_tensors_hooks
from gradviz.modes import Mode
from gradviz.ops.variables.saved_variable import SavedVariable
from gradviz.ops.variables.variable import Value, Variable

#: Properties of a tensor that must be the same in both runs; None if none must.
Metadata = Callable[[Variable], object]

TIP: Final = (
    "\nTip: To see a more detailed error message, either pass `debug=True` to\n"
    "`torch.utils.checkpoint.checkpoint(...)` or wrap the code block\n"
    "with `with torch.utils.checkpoint.set_checkpoint_debug_enabled(True):` to\n"
    "enable checkpoint-debug mode globally.\n"
)


class CheckpointError(RuntimeError):
    """The second run of a checkpointed function saved other tensors than the first."""


class GraphExecGroup:
    """A block whose backwards share recomputed tensors of checkpoints.

    Without it each backward has its own second run. The backwards of one block must
    not want the same saved tensor.
    """

    def __enter__(self) -> Self:
        if (outer := _GROUP.get()) is not None:
            raise RuntimeError(
                f"GraphExecGroup contexts cannot be nested. "
                f"Already inside group {outer}"
            )
        _GROUP.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        _GROUP.set(None)


_GROUP: Final[Mode[GraphExecGroup | None]] = Mode(
    "gradviz.graph_exec_group", default=None
)


class Placeholder:
    """Stands for a saved tensor.

    Attributes:
        tensors: By run, the tensor until it is asked for.
    """

    __slots__ = ("__weakref__", "tensors")

    def __init__(self) -> None:
        self.tensors: dict[Hashable, Value] = {}


class _StopRecomputationError(Exception):
    """Stops the second run once all that is needed has been computed."""


class CheckpointFrame:
    """One call of a checkpointed function; see Note [Placeholders].

    Args:
        recompute: Runs the function again.
        arguments: Arguments to run it with; tensors are saved as an op would save them.
        early_stop: True if the second run ends as soon as all tensors are there.
        metadata: Function of a tensor for the properties to compare of both runs.
        explain: Says what both runs did, for the error if they differ.

    Attributes:
        is_forward_done: True if the first run has ended.
    """

    def __init__(
        self,
        recompute: Callable[..., object],
        arguments: Sequence[object],
        *,
        early_stop: bool,
        metadata: Metadata | None,
        explain: Callable[[], str] | None = None,
    ) -> None:
        self._recompute = recompute
        self._arguments = [
            SavedVariable(x) if isinstance(x, Variable) else x for x in arguments
        ]
        self._early_stop = early_stop
        self._metadata = metadata
        self._explain = explain
        self._placeholders: list[weakref.ref[Placeholder]] = []
        self._expected: list[object] = []
        self._counts: defaultdict[Hashable, int] = defaultdict(int)
        self._have_run: set[Hashable] = set()
        self._may_differ = False
        self.is_forward_done = False

    def hooks(self) -> saved_tensors_hooks:
        """Hooks that replace saved tensors during the first run."""
        return saved_tensors_hooks(self._reserve, self._fetch)

    def _reserve(self, tensor: Variable) -> Placeholder:
        placeholder = Placeholder()
        self._placeholders.append(weakref.ref(placeholder))
        self._expected.append(self._metadata and self._metadata(tensor))
        return placeholder

    def _fetch(self, placeholder: Placeholder) -> Value:
        try:
            return self._fetched(placeholder)
        except CheckpointError as error:
            if self._explain is None:
                raise
            raise CheckpointError(self._explain()) from error

    def _fetched(self, placeholder: Placeholder) -> Value:
        run = _current_run()
        if run not in self._have_run:
            self._run_again(run)
        try:
            return placeholder.tensors.pop(run)
        except KeyError:
            extra = (
                "Performing two backward calls that overlap (i.e. require the same "
                "saved activation in order to compute gradients) is not allowed while "
                "under the torch.utils.checkpoint.GraphExecGroup context. "
                if _GROUP.get() is not None
                else ""
            )
            raise CheckpointError(
                f"torch.utils.checkpoint: Unpack is being triggered for a tensor that "
                f"was already unpacked once. {extra}If you are calling "
                f"ctx.saved_tensors in backward, make sure to do so only once. "
                f"Otherwise please open an issue with details on your use case."
            ) from None

    def _run_again(self, run: Hashable) -> None:
        arguments = [
            x.unpack(None) if isinstance(x, SavedVariable) else x
            for x in self._arguments
        ]
        # The second run's own graph may be differentiated too, by a backward inside
        # the function: it keeps the tensors themselves.
        hooks = saved_tensors_hooks(lambda x: self._fill(run, x), lambda x: x)
        try:
            with hooks, enable_grad():
                self._recompute(*arguments)
        except _StopRecomputationError:
            pass
        self._have_run.add(run)
        self._check(run)

    def _fill(self, run: Hashable, tensor: Value) -> Value:
        tensor = tensor.detach() if tensor.requires_grad else tensor
        index = self._counts[run]
        self._counts[run] += 1
        if index >= len(self._placeholders):
            if not self.is_forward_done:
                # A backward inside the function, of which the first run has not got
                # further yet: what comes now is not ours.
                self._may_differ = True
                return tensor
            raise CheckpointError(
                f"torch.utils.checkpoint: trying to save more tensors during "
                f"recomputation than during the original forward pass.\n{TIP}"
            )
        placeholder = self._placeholders[index]()
        if placeholder is not None:
            placeholder.tensors[run] = tensor
        if self._early_stop and index + 1 == len(self._placeholders):
            raise _StopRecomputationError
        return tensor

    def _check(self, run: Hashable) -> None:
        """Raise if the second run saved other tensors than the first one."""
        if self._may_differ:
            return
        if self._counts[run] != len(self._placeholders):
            raise CheckpointError(
                f"torch.utils.checkpoint: A different number of tensors was saved "
                f"during the original forward and recomputation.\n"
                f"Number of tensors saved during forward: {len(self._placeholders)}\n"
                f"Number of tensors saved during recomputation: "
                f"{self._counts[run]}.\n{TIP}"
            )
        if self._metadata is None:
            return
        differing = ""
        for index, (reference, expected) in enumerate(
            zip(self._placeholders, self._expected, strict=True)
        ):
            placeholder = reference()
            if placeholder is None:
                continue
            got = self._metadata(placeholder.tensors[run])
            if got != expected:
                differing += (
                    f"tensor at position {index}:\nsaved metadata: {expected}\n"
                    f"recomputed metadata: {got}\n"
                )
        if differing:
            raise CheckpointError(
                f"torch.utils.checkpoint: Recomputed values for the following tensors "
                f"have different metadata than during the forward pass.\n{differing}.\n"
                f"{TIP}"
            )


def _current_run() -> Hashable:
    """Return the key of a recomputation: a pass and a thread, or one use only."""
    thread: Any = threading.get_ident()
    if (group := _GROUP.get()) is not None:
        return (id(group), thread)
    task = current_graph_task_id()
    return object() if task == -1 else (task, thread)
