"""Checks for the first NaN or infinity in a program of PyTorch's, while it is recorded.

Note [Checks of PyTorch]
~~~~~~~~~~~~~~~~~~~~~~~~
In the forward a mode for functions sees each call of PyTorch's on the thread that began
the recording, with its results; what `torch.compile` has compiled is one call of which
nothing is seen. In a pass each node has a hook after it, which is taken away when the
pass ends. Nodes that accumulate have none: they make no gradient.

A check reads the extremes of a tensor in one go, without a graph, and draws no random
number. On a GPU the host waits for it; while a graph of CUDA's is captured nothing is
checked, for a wait would break that. Subclasses of tensors are left alone, as are
calls inside of `vmap` and of modes for operators, where values may be no values.

What is told, and when it stops, is as in our own engine: see Note [First in a pass] in
`gradviz.diagnostics.finite_checks`.
"""

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any, Final

from gradviz.pytorch.compiler import Compiler
from gradviz.pytorch.error_origin import is_ours
from gradviz.pytorch.nodes.edges import root_edge
from gradviz.pytorch.nodes.graph_reader import functions_below, seen_as
from gradviz.pytorch.nodes.places import ForwardPlace
from gradviz.pytorch.reconstruction.watched_pass import WatchedPass
from gradviz.pytorch.torch_names import PyTorch
from gradviz.pytorch.watching.gradient_cuts import GradientCuts
from gradviz.pytorch.watching.hook_registrations import OwnHook
from gradviz.pytorch.watching.pass_reports import note_not_finite
from gradviz.trace import probe
from gradviz.trace.probe import Checked
from gradviz.trace.reporting.location import Locations
from gradviz.trace.reporting.value_range import (
    FirstFound,
    ValueRange,
    joined_range,
    range_of_number,
)

#: The attribute of a tensor that has its value without its gradient.
_DATA: Final = ".data"

#: Functions whose results are no values yet, or no results.
_IGNORED: Final = frozenset(
    {
        _DATA,
        *("empty", "empty_like", "empty_strided", "empty_permuted", "empty_quantized"),
        *("new_empty", "new_empty_strided", "new", "resize_", "resize_as_", "Tensor"),
        *("__get__", "__set__", "__delete__", "backward", "register_hook"),
        *("detach", "requires_grad_", "retain_grad", "set_", "data_ptr", "storage"),
        *("untyped_storage", "numpy", "tolist", "item", "__format__", "__repr__"),
        *("isfinite", "isnan", "isinf", "nan_to_num", "_is_view", "is_floating_point"),
    }
)

#: The key of the forward among those of passes.
_FORWARD: Final = -1

#: Of nested arguments so many levels are looked at, and so many items of each.
_MAX_DEPTH: Final = 2
_MAX_ITEMS: Final = 10_000


class FiniteChecks:
    """Checks results of functions, and gradients of nodes.

    Args:
        names: Of PyTorch.
        compiler: Keeps Dynamo away.
        place: Returns the place of the calling thread in the model that runs, and the
            number of the innermost call of a module, -1 for none.
        is_busy: Tells if the calling thread is in a step of an optimizer, whose work is
            not checked.
    """

    def __init__(
        self,
        names: PyTorch,
        compiler: Compiler,
        place: Callable[[], tuple[ForwardPlace, int]],
        is_busy: Callable[[], bool],
    ) -> None:
        self._names, self._compiler = names, compiler
        self._place, self._is_busy = place, is_busy
        self._values = TensorRanges(names)
        self._locations: Locations[str] = Locations(lambda text: text)
        self._found = _ForwardFindings()
        self._of_parameters = FirstFound()
        self._cuts = GradientCuts(names, is_busy)
        self._mode: Any = None
        self._thread = 0
        #: The hooks of passes that go on. Changed by single calls into C.
        self._handles: dict[int, list[Any]] = {}
        self.is_on = False

    def install(self) -> None:
        """Begin to check; functions on the calling thread, passes on any."""
        self.is_on = True
        self._found, self._of_parameters = _ForwardFindings(), FirstFound()
        self._thread = threading.get_ident()
        self._mode = _new_mode(self._names, self._compiler, self._before, self._after)
        _change_modes(self._names, self._with_ours)

    def remove(self) -> None:
        """Check no more.

        On another thread than the one that began, the mode stays there and does
        nothing.
        """
        self.is_on = False
        mode, self._mode = self._mode, None
        if mode is not None and threading.get_ident() == self._thread:
            _change_modes(
                self._names, lambda modes: [one for one in modes if one is not mode]
            )

    def _with_ours(self, modes: list[Any]) -> list[Any]:
        """Return modes with ours below those that the program is inside of.

        The program's own leave the stack from its top. The mode of a default device
        takes for granted that it is the lowest.
        """
        has_default = bool(modes) and type(modes[0]).__name__ == "DeviceContext"
        return [*modes[:has_default], self._mode, *modes[has_default:]]

    # --- forward ---------------------------------------------------------------------

    def _before(self, name: str, args: Sequence[Any]) -> ValueRange | None:
        """Return the range of a tensor about to be changed in place, else None."""
        is_in_place = name[-1:] == "_" and name[-2:] != "__"
        if not (is_in_place or name.startswith("__i")) or not self._looks(name):
            return None
        return joined_range(self._ranges(args, ()))

    def _after(
        self,
        name: str,
        args: Sequence[Any],
        kwargs: Any,  # noqa: ANN401 - of any function
        result: Any,  # noqa: ANN401
        before: ValueRange | None,
    ) -> None:
        """Look at the results of a function."""
        self._cuts.look_at(name, (*args, *kwargs.values()), result)
        if not self._looks(name):
            return
        results = list(_tensors_in(result, self._names.torch))
        for index, one in enumerate(results):
            seen = self._values.unless_finite(one)
            if seen is None:
                continue
            own = {id(each) for each in results}
            given = before
            if given is None:
                given = joined_range(self._ranges((*args, *kwargs.values()), own))
            is_explained = given.explains(seen) or (
                given == ValueRange() and not seen.has_nan
            )
            if not is_explained and self._found.first.is_news(_FORWARD, seen):
                self._tell_result(name, index, seen, given)

    def _looks(self, name: str) -> bool:
        return (
            self.is_on
            and probe.current is not None
            and not self._found.first.is_done(_FORWARD)
            and name not in _IGNORED
            and not self._is_busy()
            and self._values.can_be_read()
        )

    def _ranges(
        self, values: Iterable[Any], own: Iterable[int]
    ) -> Iterator[ValueRange]:
        for one in _items_in(values, _MAX_DEPTH):
            if isinstance(one, float | complex):
                yield range_of_number(one)
            elif id(one) not in own and isinstance(one, self._names.torch.Tensor):
                yield self._values.range_of(one)

    def _tell_result(
        self, name: str, index: int, seen: ValueRange, given: ValueRange
    ) -> None:
        listener = probe.current
        if listener is None:
            return
        place, call = self._place()
        smallest, largest = given.magnitudes()
        listener.not_finite(
            task=-1,
            node=-1,
            what=Checked.RESULT,
            index=index,
            is_nan=seen.has_nan,
            given_infinity=given.has_infinity,
            smallest=smallest,
            largest=largest,
            call=call,
            module=place.module,
            name=name,
            location=self._locations.of_caller(),
        )

    # --- parameters ------------------------------------------------------------------

    def step_ended(self, optimizer: Any, name_of: Callable[[Any], str]) -> None:  # noqa: ANN401
        """Look at the parameters that a step of an optimizer has changed.

        The first that is not finite is told once a recording, for it stays so.

        Args:
            optimizer: The optimizer.
            name_of: Returns the name of a parameter.
        """
        listener = probe.current
        if not self.is_on or listener is None or not self._values.can_be_read():
            return
        for group in optimizer.param_groups:
            for one in group["params"]:
                seen = self._values.unless_finite(one)
                if seen is not None:
                    if self._of_parameters.is_news(_FORWARD, seen):
                        _tell_parameter(listener, name_of(one), seen)
                    return

    # --- backward --------------------------------------------------------------------

    def begin(self, one: WatchedPass, tensors: Sequence[Any]) -> None:
        """Place a hook after each node of a pass.

        Args:
            one: The pass, whose graph has been read.
            tensors: Tensors that PyTorch was called with.
        """
        if not self.is_on or one.graph is None:
            return
        found = FirstFound()
        taking_part = set(one.graph.nodes)
        handles = self._handles[one.task] = []
        roots = [root_edge(each, self._names.torch)[0] for each in tensors]
        for function in functions_below(each for each in roots if each is not None):
            node = seen_as(function)
            if node is not None and node in taking_part and node.seen_nr >= 0:
                hook = _NodeHook(self, one, node.id, node.text, found)
                handles.append(function.register_hook(hook))

    def end(self, one: WatchedPass) -> None:
        """Take the hooks of a pass away."""
        handles = self._handles.pop(one.task, None)
        for handle in handles or ():
            handle.remove()
        self._found.first.forget(_FORWARD)  # what follows is another one
        self._cuts.forget()
        if handles is not None and one.accumulates and self._values.can_be_read():
            self._measure(one)

    def _measure(self, one: WatchedPass) -> None:
        """Report the norms of the gradients to which a pass has added."""
        assert one.graph is not None
        for node in one.graph.nodes:
            leaf = None if node.variable is None else node.variable()
            norm = None if leaf is None else self._values.norm_of(leaf.grad)
            if norm is not None:
                one.listener.gradient_measured(one.task, node.id, repr(norm))

    def look_at_gradients(
        self,
        hook: "_NodeHook",
        made: Sequence[Any],
        given: Sequence[Any],
    ) -> None:
        """Look at the gradients that a node made; on the thread that ran it."""
        if hook.found.is_done(hook.of.task) or not self._values.can_be_read():
            return
        for place, gradient in enumerate(made):
            seen = self._values.unless_finite(gradient)
            if seen is None:
                continue
            ranges = [self._values.range_of(one) for one in given]
            inputs = joined_range(ranges)
            what, index = Checked.GRADIENT, place
            if inputs.explains(seen):
                if hook.found.has_any(hook.of.task):
                    continue
                # The sum of finite gradients, or what the caller gave.
                what, seen = Checked.SUM, inputs
                index = next(i for i, one in enumerate(ranges) if not one.is_finite)
            if hook.found.is_news(hook.of.task, seen):
                given_it = (inputs.has_infinity, *inputs.magnitudes())
                finding = (hook.node, what, index, seen.has_nan)
                note_not_finite(hook.of, finding, given_it, hook.name)


class _ForwardFindings(threading.local):
    """Findings in the forward of the calling thread."""

    def __init__(self) -> None:
        self.first = FirstFound()


class _NodeHook(OwnHook):
    """A hook after a node, for one pass."""

    __slots__ = ("_checks", "found", "name", "node", "of")

    def __init__(
        self,
        checks: FiniteChecks,
        of: WatchedPass,
        node: int,
        name: str,
        found: FirstFound,
    ) -> None:
        self._checks, self.of, self.node = checks, of, node
        self.name, self.found = name, found

    def __call__(self, made: Sequence[Any], given: Sequence[Any]) -> None:
        try:
            self._checks.look_at_gradients(self, made, given)
        except Exception as error:
            if not is_ours(error):
                raise


def _tell_parameter(listener: probe.Probe, name: str, seen: ValueRange) -> None:
    what, is_nan = Checked.PARAMETER, seen.has_nan
    listener.not_finite(-1, -1, what, 0, is_nan, False, "", "", -1, "", name, "")


class TensorRanges:
    """Reads ranges of PyTorch's tensors.

    Args:
        names: Of PyTorch.
    """

    def __init__(self, names: PyTorch) -> None:
        self._names = names
        torch = names.torch
        self._kinds = frozenset({torch.Tensor, torch.nn.Parameter})

    def can_be_read(self) -> bool:
        """Tell if tensors have values now; see Note [Checks of PyTorch]. Own thread."""
        c = self._names.torch._C
        return not (
            c._len_torch_dispatch_stack()
            or c._functorch.peek_interpreter_stack() is not None
            or (
                self._names.torch.cuda.is_initialized()
                and self._names.torch.cuda.is_current_stream_capturing()
            )
        )

    def unless_finite(self, tensor: Any) -> ValueRange | None:  # noqa: ANN401
        """Return None if a tensor is finite, or cannot be read; else its range."""
        if not self._is_readable(tensor):
            return None
        with self._unheard():
            torch = self._names.torch
            one = tensor.detach()
            if one.is_complex():
                one = torch.view_as_real(one.resolve_conj())
            extremes = torch.stack(torch.aminmax(one)).tolist()
        return None if all(map(math.isfinite, extremes)) else self.range_of(tensor)

    def range_of(self, tensor: Any) -> ValueRange:  # noqa: ANN401
        """Return the range of a tensor; a finite one of one that cannot be read."""
        if not self._is_readable(tensor):
            return ValueRange()
        with self._unheard():
            one = tensor.detach()
            magnitudes = one[one.isfinite()].abs()
            above = magnitudes[magnitudes > 0]
            return ValueRange(
                bool(one.isnan().any()),
                bool(one.isinf().any()),
                float(above.min()) if above.numel() else math.inf,
                float(magnitudes.max()) if magnitudes.numel() else -1.0,
            )

    def norm_of(self, tensor: Any) -> float | None:  # noqa: ANN401
        """Return the Euclidean norm of a tensor; None if it cannot be read."""
        if tensor is None or not self._is_readable(tensor):
            return None
        with self._unheard():
            torch = self._names.torch
            one = tensor.detach()
            is_short = one.dtype in {torch.float16, torch.bfloat16}
            # The sum of squares of a short type soon is too large for it.
            kind = torch.float32 if is_short else None
            return float(torch.linalg.vector_norm(one, dtype=kind))

    def _is_readable(self, tensor: Any) -> bool:  # noqa: ANN401
        if type(tensor) not in self._kinds:
            return False
        torch = self._names.torch
        return bool(
            (tensor.is_floating_point() or tensor.is_complex())
            and tensor.layout is torch.strided
            and tensor.device.type != "meta"
            and tensor.numel()
        )

    def _unheard(self) -> ExitStack:
        """Return a block in which nothing is recorded in a graph or heard by modes."""
        stack = ExitStack()
        stack.enter_context(self._names.no_torch_functions())
        stack.enter_context(self._names.torch.no_grad())
        return stack


def _new_mode(
    names: PyTorch,
    compiler: Compiler,
    before: Callable[..., ValueRange | None],
    after: Callable[..., None],
) -> Any:  # noqa: ANN401 - of a class of PyTorch's
    """Return a mode that calls functions between two others."""
    is_compiling = names.is_compiling

    def quietly(function: Callable[..., Any], *args: Any) -> Any:  # noqa: ANN401
        try:
            return function(*args)
        except Exception as error:
            if not is_ours(error):
                raise
            return None

    class CheckingMode(names.torch.overrides.TorchFunctionMode):  # type: ignore[misc, name-defined]
        """Hears of each call of a function of PyTorch's."""

        def __torch_function__(
            self,
            func: Any,  # noqa: ANN401
            types: Any,  # noqa: ANN401
            args: Any = (),  # noqa: ANN401
            kwargs: Any = None,  # noqa: ANN401
        ) -> Any:  # noqa: ANN401
            # First, and alone: Dynamo follows this, and takes for granted that it is
            # true.
            if is_compiling():
                return func(*args, **(kwargs or {}))
            kwargs = kwargs or {}
            name = str(getattr(func, "__name__", ""))
            if name == "__get__":
                name = getattr(getattr(func, "__self__", None), "__name__", name)
                name = _DATA if name == "data" else "__get__"
            seen = compiler.call(quietly, before, name, args)
            try:
                result = func(*args, **kwargs)
            except BaseException as error:
                if error.__traceback__ is not None:
                    error.__traceback__ = error.__traceback__.tb_next
                raise
            compiler.call(quietly, after, name, args, kwargs, result, seen)
            return result

    compiler.skips(CheckingMode.__torch_function__)
    return CheckingMode()


def _change_modes(names: PyTorch, change: Callable[[list[Any]], list[Any]]) -> None:
    """Put other modes for functions in the place of those of this thread.

    Source: torch/utils/_device.py, DeviceContext.__enter__
    """
    overrides = names.torch.overrides
    modes = []
    while overrides._len_torch_function_stack():
        modes.append(overrides._pop_mode())
    for mode in change(modes[::-1]):
        overrides._push_mode(mode)


def _tensors_in(result: Any, torch: Any) -> Iterator[Any]:  # noqa: ANN401
    return (one for one in _items_in((result,), 1) if isinstance(one, torch.Tensor))


def _items_in(values: Iterable[Any], depth: int) -> Iterator[Any]:
    """Yield values, and those in lists and tuples among them."""
    for one in list(values)[:_MAX_ITEMS]:
        if isinstance(one, list | tuple) and depth:
            yield from _items_in(one, depth - 1)
        else:
            yield one
