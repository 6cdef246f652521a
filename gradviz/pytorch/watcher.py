"""PyTorch's backward passes, reported to whoever listens, as those of our own engine.

`torch.autograd.backward` and `grad` call one function, which is replaced for as long as
somebody watches. What goes wrong in here is said in the trace and changes nothing: the
program's own call is made once, with what it was given, and has its own outcome.
"""

import threading
import time
from collections.abc import Sequence
from types import ModuleType
from typing import Any, Final

from gradviz.ids import next_task_id
from gradviz.pytorch.blame import RUN_BACKWARD, is_of_a_node, is_ours
from gradviz.pytorch.clocks import fitted_offset
from gradviz.pytorch.edges import output_edge, root_edge
from gradviz.pytorch.forward import ForwardHooks
from gradviz.pytorch.graph import read_graph
from gradviz.pytorch.inference import Inference
from gradviz.pytorch.names import PyTorch
from gradviz.pytorch.optimizers import OptimizerHooks
from gradviz.pytorch.profile import Profile
from gradviz.pytorch.reports import tell_begun, tell_seen, tell_unseen
from gradviz.pytorch.rivals import Rivals
from gradviz.pytorch.seen_node import SeenGraph
from gradviz.pytorch.session import Session
from gradviz.pytorch.strangers import Strangers
from gradviz.pytorch.watched_pass import WatchedPass
from gradviz.trace import probe
from gradviz.trace.location import Locations

#: What PyTorch's function takes, after the tensors.
_PARAMETERS: Final = (
    *("grad_tensors", "keep_graph", "create_graph", "inputs", "allow_unreachable"),
    "accumulate_grad",
)

#: To this a pass reports that nobody listens to.
_NOBODY: Final = probe.Probe()

#: Of an error's text so much is told.
_MAX_ERROR: Final = 2_000


class Watcher:
    """Stands between PyTorch's front end and its engine.

    Args:
        names: Of PyTorch.
        rivals: The program's own profilers.
    """

    def __init__(self, names: PyTorch, rivals: Rivals) -> None:
        self._names = names
        self._rivals = rivals
        own = type(self)._run_backward.__code__
        self._strangers = Strangers(names.run_backward.__code__, own)
        self._profile = Profile(names, rivals, self._strangers)
        rivals.make_way = self._profile.make_way
        self._forward = ForwardHooks(names)
        self._optimizers = OptimizerHooks(names)
        self._locations: Locations[str] = Locations(lambda text: text)
        # Whoever holds it may run finalisers, which may end a recording.
        self._lock = threading.RLock()
        self._engine = Inference()  # guarded by the lock, as is what follows
        #: Passes that go on, in the order in which they began. Changed by single calls
        #: into C, so that whoever only looks needs no lock.
        self._open: list[WatchedPass] = []
        self._replaced: list[ModuleType] = []
        self._is_wanted = False

    def install(self) -> None:
        """Begin to watch; on the thread that imported torch if that can be chosen."""
        self._is_wanted = True
        self._forward.install()
        self._optimizers.install()
        torch = self._names.torch
        for module in (torch.autograd, torch.autograd.graph):
            if getattr(module, RUN_BACKWARD, None) is self._names.run_backward:
                setattr(module, RUN_BACKWARD, self._run_backward)
                self._replaced.append(module)
                self._strangers.may_be_there = True
        self._profile.warm_up()

    def remove(self) -> None:
        """Watch no more. Passes that go on are watched to their end."""
        self._is_wanted = False
        self._forward.remove()
        self._optimizers.remove()
        with self._lock:
            self._put_back()

    def renewed(self) -> "Watcher":
        """Another one in place of this, whose locks nobody holds, after a fork.

        A pass that this thread is inside of still ends here.
        """
        self._lock = threading.RLock()
        self._forward.remove()
        self._optimizers.remove()
        for module in self._replaced:
            setattr(module, RUN_BACKWARD, self._names.run_backward)
        self._replaced.clear()
        self._is_wanted = False
        other = Watcher(self._names, self._rivals)
        other._profile = self._profile.renewed(other._strangers)
        self._rivals.make_way = other._profile.make_way
        return other

    def _put_back(self) -> None:
        """Leave PyTorch as it was, once no pass goes on that has to be counted."""
        while self._replaced and not self._is_wanted and self._profile.is_idle:
            module = self._replaced.pop()
            if getattr(module, RUN_BACKWARD) == self._run_backward:
                setattr(module, RUN_BACKWARD, self._names.run_backward)

    def _run_backward(self, tensors: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """What PyTorch calls in place of its own; in tracebacks it does not appear."""
        listener = probe.current
        is_heard = listener is not None and not self._names.is_compiling()
        one = self._new_pass(listener if listener and is_heard else _NOBODY)
        try:
            try:
                self._begin(one, tensors, args, kwargs, is_heard=is_heard)
                return self._names.run_backward(tensors, *args, **kwargs)
            except BaseException as error:
                one.error = f"{type(error).__name__}: {error}"[:_MAX_ERROR]
                one.fails_in_node = is_of_a_node(error.__traceback__)
                raise
            finally:
                self._end(one)
        except BaseException as error:
            self._end(one)  # again, for an interrupt may have come into it
            if error.__traceback__ is not None:
                error.__traceback__ = error.__traceback__.tb_next
            raise

    # --- before ----------------------------------------------------------------------

    def _new_pass(self, listener: probe.Probe) -> WatchedPass:
        thread = threading.get_native_id()
        name = threading.current_thread().name
        parent = self._parent_on(thread)
        return WatchedPass(next_task_id(), parent, listener, thread, name)

    def _begin(
        self,
        one: WatchedPass,
        tensors: Any,  # noqa: ANN401
        args: Sequence[Any],
        kwargs: Any,  # noqa: ANN401
        *,
        is_heard: bool,
    ) -> None:
        """Do what has to be done before a pass; its begin is told of last."""
        call = dict(zip(_PARAMETERS, args, strict=False)) | kwargs
        try:
            if is_heard:
                self._open.append(one)
                self._take_graph(one, tensors, call)
        except Exception as error:
            if not is_ours(error):
                raise
            one.doubt = f"gradviz failed to read its graph: {error!r}"
        try:
            # Those that nobody listens to are counted too: the profiler may run for
            # passes of other threads, and sees their functions then.
            self._profile.begin(one, is_heard=is_heard)
            if is_heard:
                tell_begun(one, len(tensors), call, self._locations.of_caller())
        except Exception as error:
            if not is_ours(error):
                raise
            one.doubt = f"gradviz failed to watch it: {error!r}"
        one.called_ns = time.perf_counter_ns()

    def _parent_on(self, thread: int) -> WatchedPass | None:
        """The pass inside of which this thread is.

        A thread that Python did not start belongs to the engine, and so does what it
        calls: it is inside of the pass that began last, as far as one can tell.
        """
        inside = [one for one in self._open if one.called_ns and not one.returned_ns]
        for one in reversed(inside):
            if one.thread == thread:
                return one
        is_engines = isinstance(threading.current_thread(), threading._DummyThread)
        return inside[-1] if inside and is_engines else None

    def _take_graph(self, one: WatchedPass, tensors: Any, call: Any) -> None:  # noqa: ANN401
        graph = self._read(tensors, call.get("inputs") or ())
        if graph is not None:
            one.take(graph, accumulates=bool(call.get("accumulate_grad")))
            one.listener.nodes_defined(graph.nodes, graph.made_at)

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
        """A pass is over. Where an interrupt ended this, it is called once more."""
        one.returned_ns = one.returned_ns or time.perf_counter_ns()
        one.called_ns = one.called_ns or one.returned_ns - 1
        if one in self._open:
            self._open.remove(one)
        with self._lock:
            session = self._profile.end(one)
            if session is not None:
                self._tell(session)
            if not self._is_wanted:
                self._put_back()
        for each in (*self._profile.take_lost(), one):
            if each.unseen != "" and each.is_begun and not each.is_told:
                each.is_told = True
                tell_unseen(each)

    def _tell(self, session: Session) -> None:
        # Of one that was interrupted before its begin was told, no end is.
        passes = [one if one.is_begun else one.unheard() for one in session.passes]
        passes.sort(key=lambda one: one.called_ns)
        offset_ns = fitted_offset(session.offset_ns, passes, session.runs)
        engine, self._engine = self._engine, Inference()
        try:
            replays = engine.go_through(passes, session.runs, offset_ns)
        except BaseException as error:
            has_failed = isinstance(error, Exception) and is_ours(error)
            what = f"failed ({error!r})" if has_failed else "was interrupted"
            for one in passes:
                one.doubt = f"gradviz {what} when it went through what this pass did"
                tell_unseen(one)
            if not has_failed:
                raise
            return
        self._engine = engine  # whatever interrupts that leaves a new one
        tell_seen(replays)
