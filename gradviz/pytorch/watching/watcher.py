"""PyTorch's backward passes, reported to listeners like our own engine's.

`torch.autograd.backward` and `grad` call one function, which is replaced for as long as
somebody watches. What goes wrong in here is said in the trace and changes nothing: the
program's own call is made once, with what it was given, and has its own outcome.
"""

import threading
import time
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from gradviz.locks import SafeRLock
from gradviz.pytorch.compiler import Compiler
from gradviz.pytorch.error_origin import (
    RUN_BACKWARD,
    ForgivingModels,
    is_of_a_node,
    is_ours,
)
from gradviz.pytorch.nodes.edges import output_edge, root_edge
from gradviz.pytorch.nodes.graph_reader import ID_KEY, read_graph
from gradviz.pytorch.nodes.module_calls import ForwardHooks, class_of
from gradviz.pytorch.nodes.places import ForwardPlace
from gradviz.pytorch.nodes.seen_node import (
    DATA_PARALLEL,
    PlannedHooks,
    SeenGraph,
    SeenNode,
)
from gradviz.pytorch.reconstruction.clocks import fitted_offset
from gradviz.pytorch.reconstruction.pass_events import Inference
from gradviz.pytorch.reconstruction.seen_queues import ReplayedPass
from gradviz.pytorch.reconstruction.session import Session
from gradviz.pytorch.reconstruction.watched_pass import WatchedPass
from gradviz.pytorch.torch_names import PyTorch
from gradviz.pytorch.watching.counted_passes import UncountedPasses
from gradviz.pytorch.watching.forward_lines import ForwardLines
from gradviz.pytorch.watching.hook_registrations import HookRegistrations
from gradviz.pytorch.watching.kept_graphs import KeptGraphs
from gradviz.pytorch.watching.optimizers import OptimizerHooks
from gradviz.pytorch.watching.other_profilers import OtherProfilers
from gradviz.pytorch.watching.pass_reports import (
    listeners_of,
    note_losses,
    tell_begun,
    tell_not_finite,
    tell_placed,
    tell_saved,
    tell_seen,
    tell_unseen,
)
from gradviz.pytorch.watching.profiler import Profile
from gradviz.trace import probe
from gradviz.trace.events import Unexplained
from gradviz.trace.probe import How
from gradviz.trace.reporting.ids import next_task_id
from gradviz.trace.reporting.location import Locations

if TYPE_CHECKING:
    from gradviz.pytorch.reconstruction.device_records import DeviceRecords
    from gradviz.pytorch.reconstruction.seen_collectives import SeenCollective
    from gradviz.pytorch.watching.finite_checks import FiniteChecks

#: Parameters of PyTorch's function, after the tensors.
_PARAMETERS: Final = (
    *("grad_tensors", "keep_graph", "create_graph", "inputs", "allow_unreachable"),
    "accumulate_grad",
)

#: To this a pass reports that nobody listens to.
_NOBODY: Final = probe.Probe()

#: The error of a node that needs a tensor which has changed since it was saved.
IN_PLACE: Final = "modified by an inplace operation"

#: Of an error's text so much is told.
_MAX_ERROR: Final = 2_000


class Watcher:
    """Stands between PyTorch's front end and its engine.

    Args:
        names: Of PyTorch.
        other_profilers: The program's own profilers.
        compiler: Keeps Dynamo away from functions of gradviz.
    """

    def __init__(
        self, names: PyTorch, other_profilers: OtherProfilers, compiler: Compiler
    ) -> None:
        self._names = names
        self._other_profilers = other_profilers
        self._compiler = compiler
        self._compiler.skips(type(self)._run_backward)
        own = type(self)._run_backward.__code__
        self._uncounted = UncountedPasses(names.run_backward.__code__, own)
        self._profile = Profile(names, other_profilers, self._uncounted)
        other_profilers.make_way = self._profile.make_way
        self._lines = ForwardLines(names.torch, names.of_stacks, compiler)
        self._forward = ForwardHooks(
            names,
            self._lines.module_begins,
            self._lines.module_ends,
            self._lines.are_kept,
        )
        self._optimizers = OptimizerHooks(names, self._tell_models, self._step_ended)
        self._registrations = HookRegistrations(names, compiler)
        self._checks: FiniteChecks | None = None
        self._kept = KeptGraphs()
        self._locations: Locations[str] = Locations(lambda text: text)
        # Its holder may run finalizers, which may end a recording.
        self._lock = SafeRLock()
        self._engine = Inference()  # guarded by the lock, as is what follows
        #: Passes that go on, in the order in which they began. Changed by single calls
        #: into C, so that whoever only looks needs no lock.
        self._open: list[WatchedPass] = []
        self._replaced: list[ModuleType] = []
        self._is_wanted = False

    def install(self, stacks: str) -> None:
        """Begin to watch; on the thread that imported torch if that can be chosen.

        Args:
            stacks: Part that is kept of the lines that make nodes; see `Scope.stacks`.
        """
        self._is_wanted = True
        self._kept = KeptGraphs()
        self._registrations.install()
        self._forward.install()
        self._optimizers.install()
        self._lines.install(stacks)
        torch = self._names.torch
        for module in (torch.autograd, torch.autograd.graph):
            if getattr(module, RUN_BACKWARD, None) is self._names.run_backward:
                setattr(module, RUN_BACKWARD, self._run_backward)
                self._replaced.append(module)
                self._uncounted.may_exist = True
        # Kineto complains on stderr where another thread than that which imported torch
        # is the first to use it; passes do so later on their own threads.
        if threading.current_thread() is threading.main_thread():
            self._profile.warm_up()

    def remove(self) -> None:
        """Watch no more. Passes that go on are watched to their end."""
        self._is_wanted = False
        self._registrations.remove()
        self._forward.remove()
        self._optimizers.remove()
        self._lines.remove()
        with self._lock:
            self._put_back()

    def tell_kept(self, listener: probe.Probe, *, always: bool) -> None:
        """Tell a listener which graphs pile up; see `KeptGraphs.tell`."""
        with self._unheard():
            self._kept.tell(listener, always=always)

    def begin_checks(self) -> None:
        """Check values for NaN and infinity from now on."""
        # Loaded where it is asked for.
        from gradviz.pytorch.watching.finite_checks import FiniteChecks  # noqa: PLC0415

        if self._checks is None:
            names, compiler = self._names, self._compiler
            place, is_busy = self._forward.now, self._optimizers.is_in_step
            self._checks = FiniteChecks(names, compiler, place, is_busy)
        self._checks.install()

    def end_checks(self) -> None:
        """Check values no more."""
        if self._checks is not None:
            self._checks.remove()

    def _step_ended(self, optimizer: object) -> None:
        """Check the parameters that a step of an optimizer has changed."""
        if self._checks is not None:
            names_of = self._forward.models.names_of
            with self._unheard(), ForgivingModels():
                self._checks.step_ended(
                    optimizer, lambda one: next(iter(names_of(one)), "?")
                )

    def renewed(self) -> "Watcher":
        """Return a replacement with free locks, after a fork.

        A pass that this thread is inside of still ends here.
        """
        self._lock = SafeRLock()
        self._registrations.remove()
        self._forward.remove()
        self._optimizers.remove()
        self._lines.remove()
        self.end_checks()
        for module in self._replaced:
            setattr(module, RUN_BACKWARD, self._names.run_backward)
        self._replaced.clear()
        self._is_wanted = False
        other = Watcher(self._names, self._other_profilers, self._compiler)
        other._profile = self._profile.renewed(other._uncounted)
        self._other_profilers.make_way = other._profile.make_way
        return other

    def _put_back(self) -> None:
        """Leave PyTorch as it was, once no pass goes on that has to be counted."""
        while self._replaced and not self._is_wanted and self._profile.is_idle:
            module = self._replaced.pop()
            if getattr(module, RUN_BACKWARD) == self._run_backward:
                setattr(module, RUN_BACKWARD, self._names.run_backward)

    def _run_backward(self, tensors: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Run in place of PyTorch's own; it does not appear in tracebacks."""
        listener = probe.current
        is_heard = listener is not None and not self._names.is_compiling()
        hears = listener if listener and is_heard else _NOBODY
        call = self._compiler.call  # so that of ours nothing else is compiled
        one = call(self._new_pass, hears)
        try:
            try:
                call(self._begin, one, tensors, args, kwargs, is_heard=is_heard)
                return self._names.run_backward(tensors, *args, **kwargs)
            except BaseException as error:
                call(self._note_error, one, error)
                raise
            finally:
                call(self._end, one)
        except BaseException as error:
            call(self._end, one)  # again, for an interrupt may have come into it
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
        """Prepare a pass; its start is reported last."""
        call = dict(zip(_PARAMETERS, args, strict=False)) | kwargs
        try:
            if one.parent is not None:
                node = self._names.current_node()
                one.inside = -1 if node is None else node.metadata.get(ID_KEY, -1)
            self._lines.pass_begins(one)
            if is_heard:
                self._open.append(one)
                self._take_graph(one, tensors, call)
        except Exception as error:
            if not is_ours(error):
                raise
            one.problem = f"gradviz failed to read its graph: {error!r}"
        try:
            # Those that nobody listens to are counted too: the profiler may run for
            # passes of other threads, and sees their functions then.
            self._profile.begin(one, is_heard=is_heard)
            if is_heard:
                line = self._locations.of_caller()
                tell_begun(one, len(tensors), call, line)
                if call.get("create_graph"):
                    one.place_before = self._forward.places.of_caller().now
                    self._move_to(one.place_before._replace(line=line))
                with self._unheard():
                    note_losses(one, tensors, self._names.torch)
                    if self._checks is not None:
                        self._checks.begin(one, tensors)
        except Exception as error:
            if not is_ours(error):
                raise
            one.problem = f"gradviz failed to watch it: {error!r}"
        one.called_ns = time.perf_counter_ns()

    def _move_to(self, place: ForwardPlace) -> None:
        """Nodes that this thread makes from now on are made at a place."""
        places, number = (
            self._forward.places.of_caller(),
            self._names.next_sequence_nr(),
        )
        places.move_to(place, number)

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
        accumulates = bool(call.get("accumulate_grad"))
        inputs = call.get("inputs") or ()
        graph = self._read(one.listener, tensors, inputs, accumulate=accumulates)
        if graph is None:
            self._tell_models(one.listener)
        else:
            one.take(graph, accumulates=accumulates)
            one.hooks = self._planned(graph)
            if accumulates:
                with self._unheard():
                    one.had_grad = graph.leaves_with_grad()
                one.adds = (
                    How.OUT_OF_PLACE if call.get("create_graph") else How.IN_PLACE
                )
            one.listener.nodes_defined(graph.nodes, graph.made_at)
            tell_saved(one.listener, graph)
            self._tell_models(one.listener)

    def _planned(self, graph: SeenGraph) -> dict[SeenNode, PlannedHooks]:
        """Return the hooks that a pass is about to call, as far as they are known."""
        models = self._forward.models
        modules = [one for one in models.roots() if class_of(one) == DATA_PARALLEL]
        if not modules and not any(node.hooks for node in graph.nodes):
            return {}
        # Loaded where there are hooks.
        from gradviz.pytorch.nodes.hook_plan import HookPlan  # noqa: PLC0415

        line_of, of_modules = self._registrations.line_of, self._names.of_modules
        plan = HookPlan(line_of, models.module_name, of_modules, modules)
        found = {node: plan.of_node(node) for node in graph.nodes}
        return {node: hooks for node, hooks in found.items() if hooks is not None}

    def _tell_models(self, listener: probe.Probe, optimizer: Any = None) -> None:  # noqa: ANN401
        """Tell a listener of all models, those that an optimizer trains too."""
        models = self._forward.models
        with self._names.no_overrides(), ForgivingModels():
            for group in () if optimizer is None else optimizer.param_groups:
                models.meet(group["params"])
            models.tell(listener)
            if optimizer is not None:
                self._optimizers.tell_held(listener, optimizer, models.names_of)

    def _read(
        self,
        listener: probe.Probe,
        tensors: Any,  # noqa: ANN401
        inputs: Any,  # noqa: ANN401
        *,
        accumulate: bool,
    ) -> SeenGraph | None:
        names = self._names
        with self._unheard():
            roots = [root_edge(one, names.torch) for one in tensors]
            known = [(function, nr) for function, nr in roots if function is not None]
            if not known or len(known) < len(roots):
                return None  # which PyTorch refuses
            outputs = [output_edge(one, names.torch) for one in inputs]
            places, models = self._forward.places.supposed(), self._forward.models
            number = names.next_sequence_nr()
            graph = read_graph(
                known,
                outputs,
                places,
                models,
                number,
                accumulate=accumulate,
                listeners=listeners_of(listener),
            )
            roots_known = [function for function, _ in known]
            self._registrations.place(roots_known)
            self._kept.note_roots(roots_known, number)
            return graph

    @contextmanager
    def _unheard(self) -> Iterator[None]:
        """Hide our reads from subclasses and modes of the program."""
        with self._names.no_torch_functions(), self._names.no_dispatch():
            yield

    # --- after -----------------------------------------------------------------------

    def _end(self, one: WatchedPass) -> None:
        """A pass is over. Where an interrupt ended this, it is called once more."""
        one.returned_ns = one.returned_ns or time.perf_counter_ns()
        one.called_ns = one.called_ns or one.returned_ns - 1
        if one in self._open:
            self._open.remove(one)
        if self._checks is not None:
            self._checks.end(one)
        tell_not_finite(one)
        self._lines.pass_ends(one)
        if one.place_before is not None:
            self._move_to(one.place_before)
            one.place_before = None
        with self._lock:
            session = self._profile.end(one)
            if session is not None:
                self._tell(session)
            if not self._is_wanted:
                self._put_back()
        lost = self._profile.take_lost()
        for each in (*lost, one):
            if each.unseen != "" and each.is_begun and not each.is_told:
                each.is_told = True
                tell_unseen(each)
        told = [*lost, one, *([] if session is None else session.passes)]
        for listener in {each.listener for each in told}:
            listener.call_returned()

    def _note_error(self, one: WatchedPass, error: BaseException) -> None:
        one.error = f"{type(error).__name__}: {error}"[:_MAX_ERROR]
        one.fails_in_node = is_of_a_node(error.__traceback__)
        if isinstance(error, RuntimeError) and IN_PLACE in one.error and one.is_begun:
            # Loaded where it is asked for.
            from gradviz.pytorch.watching import (  # noqa: PLC0415
                changed_tensors,
            )

            with ForgivingModels():
                for change in changed_tensors.find_changed(self._names, one.error):
                    one.listener.tensor_changed(one.task, *change)

    def _tell(self, session: Session) -> None:
        # Of one that was interrupted before its start was told, no end is.
        passes = [one if one.is_begun else one.unheard() for one in session.passes]
        passes.sort(key=lambda one: one.called_ns)
        offset_ns = fitted_offset(session.offset_ns, passes, session.runs)
        engine, self._engine = self._engine, Inference()
        try:
            replays = engine.go_through(passes, session.runs, offset_ns)
            if session.collectives:
                self._tell_collectives(session.collectives, replays, offset_ns)
        except BaseException as error:
            has_failed = isinstance(error, Exception) and is_ours(error)
            what = f"failed ({error!r})" if has_failed else "was interrupted"
            for one in passes:
                one.problem = f"gradviz {what} when it went through what this pass did"
                tell_unseen(one)
            if not has_failed:
                raise
            return
        self._engine = engine  # whatever interrupts that leaves a new one
        tell_placed(replays, self._placed_anew(replays))
        tell_seen(replays)
        if session.devices is not None:
            _tell_devices(session.devices, replays, offset_ns)

    def _tell_collectives(
        self,
        seen: "Sequence[SeenCollective]",
        replays: Sequence[ReplayedPass],
        offset_ns: int,
    ) -> None:
        """Report the ranks' collectives, and the gradients of each bucket."""
        # Loaded where ranks have met.
        from gradviz.pytorch.reconstruction.seen_collectives import (  # noqa: PLC0415
            tell_collectives,
        )

        data_parallel = self._forward.data_parallel
        with self._unheard():
            plans = data_parallel.plans(self._forward.models.name_of)
            everybody = data_parallel.default_group()
            tell_collectives(replays, seen, offset_ns, plans, everybody)

    def _placed_anew(self, replays: Iterable[ReplayedPass]) -> set[SeenNode]:
        """Correct where nodes were made, now that it is known which threads made them.

        Returns:
            Those whose place is another one than before.
        """
        places = self._forward.places
        return {
            node
            for replay in replays
            if replay.misplaced and replay.about.graph is not None
            for node in places.place_anew(replay.misplaced, replay.about.graph.nodes)
        }


def _tell_devices(
    seen: "DeviceRecords", replays: Sequence[ReplayedPass], offset_ns: int
) -> None:
    """Report the devices' work; errors are reported, and harm nobody."""
    # Programs without a device do not load the module.
    from gradviz.pytorch.reconstruction import device_events  # noqa: PLC0415

    try:
        device_events.tell_devices(seen, replays, offset_ns)
    except Exception as error:
        if not is_ours(error):
            raise
        why = f"gradviz failed to tell what devices did: {error!r}"
        for one in (replay.about for replay in replays):
            row: list[int | str] = [one.returned_ns, one.task, -1, why]
            rows: dict[Hashable, list[int | str]] = {Unexplained: row}
            one.listener.rows_reported(one.thread, one.thread_name, rows)
