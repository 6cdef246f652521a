"""PyTorch's backward passes, reported to whoever listens, as those of our own engine.

`torch.autograd.backward` and `grad` call one function, which is replaced for as long as
somebody watches. What goes wrong in here is said in the trace and changes nothing: the
program's own call is made once, with what it was given, and has its own outcome.
"""

import os
import sys
import threading
import time
from collections.abc import Hashable, Sequence
from types import CodeType, FrameType, ModuleType, TracebackType
from typing import Any, Final

from gradviz.ids import next_task_id
from gradviz.pytorch.edges import output_edge, root_edge
from gradviz.pytorch.forward import ForwardHooks
from gradviz.pytorch.graph import SeenGraph, read_graph
from gradviz.pytorch.inference import Inference, fitted_offset, told
from gradviz.pytorch.names import PyTorch, names_of
from gradviz.pytorch.optimizers import OptimizerHooks
from gradviz.pytorch.profile import Profile, Session
from gradviz.pytorch.watched_pass import WatchedPass
from gradviz.trace import probe
from gradviz.trace.events import (
    DependenciesCounted,
    TaskBegun,
    TaskCompleted,
    TaskFailed,
    Unexplained,
)
from gradviz.trace.joined import Inferred
from gradviz.trace.location import Locations

#: The name under which modules have the function that runs a backward.
_RUN_BACKWARD: Final = "_engine_run_backward"

#: What that function takes, after the tensors.
_PARAMETERS: Final = (
    *("grad_tensors", "keep_graph", "create_graph", "inputs", "allow_unreachable"),
    "accumulate_grad",
)

#: Of an error's text so much is told.
_MAX_ERROR: Final = 2_000


class Watcher:
    """Stands between PyTorch's front end and its engine.

    Args:
        names: Of PyTorch.
    """

    def __init__(self, names: PyTorch) -> None:
        self._names = names
        self._profile = Profile(names, self._has_strangers)
        self._forward = ForwardHooks(names)
        self._optimizers = OptimizerHooks(names)
        self._locations: Locations[str] = Locations(lambda text: text)
        self._lock = threading.Lock()
        self._engine = Inference()  # guarded by the lock, as is what follows
        self._ended: list[WatchedPass] = []
        #: Passes that go on, in the order in which they began. Changed by single calls
        #: into C, so that whoever only looks needs no lock.
        self._open: list[WatchedPass] = []
        self._replaced: list[ModuleType] = []
        self._is_wanted = self._may_have_strangers = False

    def install(self) -> None:
        """Begin to watch; on the thread that imported torch if that can be chosen."""
        self._is_wanted = True
        self._forward.install()
        self._optimizers.install()
        torch = self._names.torch
        for module in (torch.autograd, torch.autograd.graph):
            if getattr(module, _RUN_BACKWARD, None) is self._names.run_backward:
                setattr(module, _RUN_BACKWARD, self._run_backward)
                self._replaced.append(module)
                self._may_have_strangers = True
        self._profile.warm_up()

    def remove(self) -> None:
        """Watch no more. Passes that go on are watched to their end."""
        self._is_wanted = False
        self._forward.remove()
        self._optimizers.remove()
        self._put_back()

    def renewed(self) -> "Watcher":
        """Another one in place of this, whose locks nobody holds, after a fork.

        A pass that this thread is inside of still ends here.
        """
        self._lock = threading.Lock()
        self._forward.remove()
        self._optimizers.remove()
        for module in self._replaced:
            setattr(module, _RUN_BACKWARD, self._names.run_backward)
        self._replaced.clear()
        self._is_wanted = False
        other = Watcher(self._names)
        other._profile = self._profile.renewed()
        return other

    def _put_back(self) -> None:
        """Leave PyTorch as it was, once no pass goes on that has to be counted."""
        while self._replaced and not self._is_wanted and self._profile.is_idle:
            module = self._replaced.pop()
            if getattr(module, _RUN_BACKWARD) == self._run_backward:
                setattr(module, _RUN_BACKWARD, self._names.run_backward)

    def _run_backward(self, tensors: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        listener = probe.current
        if listener is None or self._names.is_compiling():
            return self._run_unheard(tensors, args, kwargs)
        one = self._begin(listener, tensors, args, kwargs)
        try:
            result = self._names.run_backward(tensors, *args, **kwargs)
        except BaseException as error:
            one.returned_ns = time.perf_counter_ns()
            one.error = f"{type(error).__name__}: {error}"[:_MAX_ERROR]
            one.fails_in_node = _is_of_a_node(error.__traceback__)
            self._end(one)
            raise
        one.returned_ns = time.perf_counter_ns()
        self._end(one)
        return result

    def _run_unheard(self, tensors: Any, args: Any, kwargs: Any) -> Any:  # noqa: ANN401
        """Run a pass that nobody listens to; it is counted all the same."""
        why = self._profile.begin(is_heard=False)
        # The profiler may run for passes of other threads, and see its functions.
        thread = threading.get_native_id()
        one = WatchedPass(-1, None, probe.Probe(), thread, "")
        one.called_ns = time.perf_counter_ns()
        try:
            return self._names.run_backward(tensors, *args, **kwargs)
        finally:
            one.returned_ns = time.perf_counter_ns()
            self._leave(one, why)

    def _has_strangers(self) -> bool:
        """Whether a pass is under way that began before it would have been counted."""
        if self._may_have_strangers:
            own = type(self)._run_backward.__code__, type(self)._run_unheard.__code__
            original = self._names.run_backward.__code__
            self._may_have_strangers = any(
                _calls(frame, original, own) for frame in sys._current_frames().values()
            )
        return self._may_have_strangers

    # --- before ----------------------------------------------------------------------

    def _begin(
        self,
        listener: probe.Probe,
        tensors: Any,  # noqa: ANN401
        args: Sequence[Any],
        kwargs: Any,  # noqa: ANN401
    ) -> WatchedPass:
        begun_ns = time.perf_counter_ns()
        thread = threading.get_native_id()
        one = WatchedPass(
            next_task_id(),
            self._parent_on(thread),
            listener,
            thread,
            threading.current_thread().name,
        )
        one.begun_ns = begun_ns
        self._open.append(one)
        try:
            self._tell_begun(one, tensors, args, kwargs)
            one.unseen = self._profile.begin(is_heard=True)
            one.is_counted = True
        except Exception as error:  # noqa: BLE001 - the program's pass must not suffer
            one.unseen = f"gradviz failed to watch it: {error!r}"
        one.called_ns = time.perf_counter_ns()
        return one

    def _parent_on(self, thread: int) -> WatchedPass | None:
        """The pass inside of which this thread is.

        A thread that Python did not start belongs to the engine, and so does what it
        calls: it is inside of the pass that began last, as far as one can tell.
        """
        open_passes = tuple(self._open)
        for one in reversed(open_passes):
            if one.thread == thread:
                return one
        is_engines = isinstance(threading.current_thread(), threading._DummyThread)
        return open_passes[-1] if open_passes and is_engines else None

    def _tell_begun(
        self,
        one: WatchedPass,
        tensors: Any,  # noqa: ANN401
        args: Sequence[Any],
        kwargs: Any,  # noqa: ANN401
    ) -> None:
        call = dict(zip(_PARAMETERS, args, strict=False)) | kwargs
        inputs = call.get("inputs") or ()
        rows: dict[Hashable, list[int | str]] = {
            TaskBegun: [
                one.begun_ns,
                one.task,
                -1,
                -1 if one.parent is None else one.parent.task,
                one.depth,
                -1,
                len(tensors),
                len(inputs),
                bool(call.get("keep_graph")),
                bool(call.get("create_graph")),
                self._locations.of_caller(1),
            ]
        }
        one.listener.told(one.thread, one.thread_name, rows)
        graph = self._read(tensors, inputs)
        if graph is None:
            return
        one.take(graph, accumulates=bool(call.get("accumulate_grad")))
        one.listener.nodes_defined(graph.nodes, graph.made_at)
        counted: list[int | str] = [
            time.perf_counter_ns(),
            one.task,
            -1,
            len(graph.nodes),
            sum(node.num_edges for node in graph.nodes),
        ]
        one.listener.told(
            one.thread, one.thread_name, {Inferred(DependenciesCounted): counted}
        )

    def _read(self, tensors: Any, inputs: Any) -> SeenGraph | None:  # noqa: ANN401
        names = self._names
        with names.no_overrides():
            roots = [root_edge(one, names.torch) for one in tensors]
            known = [(function, nr) for function, nr in roots if function is not None]
            if not known or len(known) < len(roots):
                return None  # which PyTorch refuses
            outputs = [output_edge(one, names.torch) for one in inputs]
            places, models = self._forward.places, self._forward.models
            number = names.next_sequence_nr()
            return read_graph(known, outputs, places, models, number)

    # --- after -----------------------------------------------------------------------

    def _end(self, one: WatchedPass) -> None:
        try:
            if one.is_counted:
                self._leave(one, one.unseen)
            if one.unseen:
                self._tell_unseen(one)
        except Exception as error:  # noqa: BLE001 - see the top of this module
            one.unseen = f"gradviz failed to find out what it did: {error!r}"
            self._tell_unseen(one)
        finally:
            self._open.remove(one)

    def _leave(self, one: WatchedPass, why_unseen: str) -> None:
        """A pass is over; if it was the last, tell of all that were seen with it."""
        with self._lock:
            if not why_unseen:
                self._ended.append(one)
            session = self._profile.end(why_unseen)
            if session is not None:
                passes, self._ended = self._ended, []
                self._tell(passes, session)
            if not self._is_wanted:
                self._put_back()

    def _tell(self, passes: list[WatchedPass], session: Session) -> None:
        passes.sort(key=lambda one: one.called_ns)
        offset_ns = fitted_offset(session.offset_ns, passes, session.runs)
        replays = self._engine.go_through(passes, session.runs, offset_ns)
        for listener, thread, sheet in told(replays):
            listener.told(thread.number, thread.name, dict(sheet.rows()))

    def _tell_unseen(self, one: WatchedPass) -> None:
        t_ns = one.returned_ns
        rows: dict[Hashable, list[int | str]] = {
            Unexplained: [one.called_ns, one.task, -1, one.unseen]
        }
        if one.error:
            rows[TaskFailed] = [t_ns, one.task, -1, one.error]
        elif one.graph is not None:
            rows[TaskCompleted] = [t_ns, one.task, -1]
        one.listener.told(one.thread, one.thread_name, rows)


def _calls(
    frame: FrameType | None, function: CodeType, own: Sequence[CodeType]
) -> bool:
    """Whether a thread is inside of `function`, and not by way of `own`."""
    while frame is not None:
        if frame.f_code is function:
            before = frame.f_back
            if before is None or before.f_code not in own:
                return True
        frame = frame.f_back
    return False


def _is_of_a_node(traceback: TracebackType | None) -> bool:
    """Whether it was a node itself that raised, and not a hook, as far as one can tell.

    Nodes written in C++ have no frames, those in Python begin in PyTorch's own module.
    """
    if traceback is None or traceback.tb_next is None:
        return False
    below: TracebackType | None = traceback.tb_next
    while below is not None and below.tb_frame.f_code.co_name == _RUN_BACKWARD:
        below = below.tb_next
    if below is None:
        return True
    return below.tb_frame.f_code.co_filename.endswith(
        os.path.join("torch", "autograd", "function.py")  # noqa: PTH118
    )


# --- who watches ----------------------------------------------------------------------

_lock = threading.RLock()
_watcher: Watcher | None = None  # guarded by the lock, as is the next
_num_watching = 0


def start() -> None:
    """Have PyTorch's passes reported; torch is imported by now.

    Raises:
        UserError: This PyTorch cannot be watched.
    """
    global _watcher, _num_watching
    with _lock:
        if not _num_watching:
            watcher = _watcher or Watcher(names_of(sys.modules["torch"]))
            try:
                watcher.install()
            except BaseException:
                watcher.remove()
                raise
            _watcher = watcher
        _num_watching += 1


def stop() -> None:
    """Undo one `start`."""
    global _num_watching
    with _lock:
        _num_watching -= 1
        if not _num_watching and _watcher is not None:
            _watcher.remove()


def _after_fork() -> None:
    """In the child of a fork: passes of other threads go on elsewhere, not here."""
    global _lock, _watcher
    _lock = threading.RLock()
    before = _watcher
    if before is None:
        return
    _watcher = before.renewed()
    if _num_watching:
        _watcher.install()


os.register_at_fork(after_in_child=_after_fork)
