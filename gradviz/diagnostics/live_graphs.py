"""Live graphs and their holders: for memory that grows."""

import gc
import importlib
import sys
import threading
import types
from collections.abc import Iterable, Iterator, Sequence
from inspect import CO_OPTIMIZED
from itertools import chain
from typing import Any, Final, NamedTuple

from gradviz.diagnostics.graph_walk import describe, nodes_from
from gradviz.diagnostics.paths import Path, extended, keys_of, text_of
from gradviz.diagnostics.size import GraphSize, size_of
from gradviz.engine.graph.node import Node
from gradviz.live_objects import instances_of
from gradviz.thread_frames import outwards, thread_frames, variables_of

#: Of so many objects between a graph and who holds it all holders are looked for.
_MAX_LOOKS: Final = 20
_MAX_HOLDERS: Final = 5

#: To the copy of its variables that a frame has: that of the frame, our variable, and
#: the argument of the function that counts.
_OWN_REFERENCES: Final = 3

#: Packages whose functions run here, and hold nothing for the program.
_OWN_PACKAGES: Final = ("gradviz.diagnostics.", "gradviz.pytorch.", "torch.")

#: Variables that every module has; those that `exec` was given have the last one only.
_MODULE_KEYS: Final = frozenset({"__spec__", "__builtins__"})


class LiveGraph(NamedTuple):
    """A graph that is alive; prints as text.

    Attributes:
        root: The node at which a backward would begin.
        size: Size of the graph that can be reached from there.
        holders: Holders of the root, a text each.
    """

    root: Node
    size: GraphSize
    holders: tuple[str, ...]

    def __str__(self) -> str:
        held = ", and by ".join(self.holders) or "nobody that could be found"
        return (
            f"{describe(self.root)}: {self.size.nodes:,} nodes, "
            f"{self.size.saved_bytes:,} bytes saved, held by {held}"
        )


class _Stopped(NamedTuple):
    """Of a type of objects that have the variables of a function that does not run.

    Attributes:
        frame: The name of the attribute that is the frame; empty if the object is it.
        state: The state of the function, as a relative clause.
    """

    frame: str
    state: str


#: Those of functions that run are in none of them: see `_Search`.
_STOPPED: Final[dict[type, _Stopped]] = {
    types.FrameType: _Stopped("", "whose traceback is kept"),
    types.GeneratorType: _Stopped("gi_frame", "which is suspended"),
    types.CoroutineType: _Stopped("cr_frame", "which is suspended"),
    types.AsyncGeneratorType: _Stopped("ag_frame", "which is suspended"),
}


def live_graphs() -> list[LiveGraph | Any]:
    """Find all graphs that are alive: those of this engine, then those of PyTorch.

    Looks at every object that the garbage collector knows, some ten times: a second
    for a million objects, however many graphs there are.

    Returns:
        The largest first: `LiveGraph`s, and `gv.pytorch.live_graphs()` of a program
        that has imported PyTorch.
    """
    of_ours: list[LiveGraph | Any] = [*own_live_graphs()]
    if "torch" not in sys.modules:
        return of_ours
    # Loaded where there is PyTorch.
    of_torch = importlib.import_module("gradviz.pytorch.nodes.live_graphs")
    return of_ours + list(of_torch.live_graphs())


def own_live_graphs() -> list[LiveGraph]:
    """Find all graphs of this engine that are alive, the largest first."""
    nodes = instances_of(Node)
    inner = {edge.node for node in nodes for edge in node.next_edges}
    roots = [node for node in nodes if node not in inner and node.next_edges]
    search = _Search(ignored=[nodes, inner, roots])
    graphs = [
        LiveGraph(root, size_of(nodes_from([root])), holders)
        for root, holders in zip(roots, search.holders(roots), strict=True)
    ]
    return sorted(graphs, key=lambda one: (-one.size.saved_bytes, -one.size.nodes))


def holders_of(
    objects: Sequence[object], paths: Sequence[Path], ignored: Sequence[object]
) -> list[tuple[str, ...]]:
    """Return the nearest holders of each of some objects, as texts.

    Args:
        objects: The objects.
        paths: Path that stands behind the name of each.
        ignored: Containers of the one who asks.
    """
    search = _Search(ignored=[objects, paths, *ignored])
    return search.holders(objects, paths)


class _Held(NamedTuple):
    """An object by which a root is held.

    Attributes:
        it: The object.
        path: Path from it to the root.
        root: Known holders of that root.
    """

    it: object
    path: Path
    root: "_Root"


class _Root:
    """Known holders of a root.

    Attributes:
        found: Texts, the nearest holders first.
        seen: Ids of the objects already visited.
    """

    def __init__(self, node: object) -> None:
        self.found: dict[str, None] = {}
        self.seen = {id(node)}

    @property
    def is_done(self) -> bool:
        """True if enough is known."""
        return len(self.found) >= _MAX_HOLDERS or len(self.seen) > _MAX_LOOKS


class _Search:
    """Search for the holders of objects, from holder to holder.

    Args:
        ignored: Objects of the search itself.
    """

    def __init__(self, ignored: Sequence[object]) -> None:
        self._ignored = {id(one) for one in ignored} | {id(self.__dict__)}
        self._variables: dict[int, list[tuple[str, str]]] = {}
        for frame in _frames():
            self._note_variables(frame)

    def _note_variables(self, frame: types.FrameType) -> None:
        """Note the objects that a running function's variables refer to.

        The garbage collector does not know that they do.
        """
        self._ignored.add(id(frame))
        variables = variables_of(frame)
        if variables is frame.f_globals:
            return  # a module, which is found without our help
        self._ignored.add(id(variables))
        del variables
        place = _place_of(frame)
        for name, value in _variables_of(frame):
            self._variables.setdefault(id(value), []).append((name, place))

    def holders(
        self, nodes: Sequence[object], paths: Sequence[Path] = ()
    ) -> list[tuple[str, ...]]:
        """Return the nearest holders of each of some roots, as texts."""
        roots = [_Root(node) for node in nodes]
        level = [
            _Held(node, path, root)
            for node, path, root in zip(
                nodes, paths or [()] * len(nodes), roots, strict=True
            )
        ]
        # To ask Python who refers to one object takes as long as to look once at what
        # all objects refer to. So all roots go one step at a time, together.
        while level := [held for held in level if not self._is_found(held)]:
            level = self._step(level)
        return [tuple(root.found)[:_MAX_HOLDERS] for root in roots]

    def _is_found(self, held: _Held) -> bool:
        """Return whether enough is known of a root, now that `held` is."""
        for name, place in self._variables.get(id(held.it), ()):
            _note(held, [name], place)
        return held.root.is_done

    def _step(self, level: list[_Held]) -> list[_Held]:
        """Return the holders of a level's objects, unless those are modules."""
        wanted: dict[int, list[_Held]] = {}
        for held in level:
            wanted.setdefault(id(held.it), []).append(held)
        further: list[_Held] = []
        own = {id(level), id(wanted), id(further), *map(id, level)}
        own |= {id(some) for some in wanted.values()}
        for holder in gc.get_objects():
            referents = gc.get_referents(holder)
            if wanted.keys().isdisjoint(map(id, referents)):
                continue
            if id(holder) in own or id(holder) in self._ignored:
                continue
            for key in {id(one) for one in referents} & wanted.keys():
                further += filter(None, (_holding(holder, one) for one in wanted[key]))
        return further


def _holding(holder: object, held: _Held) -> _Held | None:
    """`holder` as one by which the root is held; None if there is nothing beyond it."""
    root = held.root
    if root.is_done:
        return None
    if module := _module_of(holder):
        # Names that begin with "_" come last: notebooks add many of them.
        found = map(str, keys_of(held.it, holder))
        _note(held, sorted(found, key=lambda name: name[:1] == "_"), module)
        return None
    if stopped := _STOPPED.get(type(holder)):
        frame: Any = getattr(holder, stopped.frame) if stopped.frame else holder
        names = (name for name, one in _variables_of(frame) if one is held.it)
        _note(held, names, f"{_place_of(frame)}, {stopped.state}")
        return None
    if id(holder) in root.seen:
        return None
    root.seen.add(id(holder))
    return _Held(holder, extended(held.path, holder, held.it), root)


def _note(held: _Held, names: Iterable[str], place: str) -> None:
    for name in names:
        held.root.found[f"variable {name}{text_of(held.path)} of {place}"] = None


def _variables_of(frame: types.FrameType) -> list[tuple[str, object]]:
    """Return the names and values of a function's variables.

    Before Python 3.13 reading them leaves a copy in the frame, which would hold what
    the function lets go of later. It is emptied unless somebody else has it, as the
    program has what ``locals()`` returned; or a debugger may write it back.
    """
    variables = variables_of(frame)
    found = list(variables.items())
    is_copy = isinstance(variables, dict) and frame.f_code.co_flags & CO_OPTIMIZED
    debuggers = (frame.f_trace, sys.gettrace(), threading.gettrace())
    is_shared = sys.getrefcount(variables) > _OWN_REFERENCES
    if is_copy and not is_shared and not any(debuggers):
        variables.clear()
    return found


def _place_of(frame: types.FrameType) -> str:
    code = frame.f_code
    return f"{code.co_name}() at {code.co_filename}:{frame.f_lineno}"


def _frames() -> Iterator[types.FrameType]:
    """Yield the functions that run, on all threads, but not those of this module."""
    # Not from our own frame on: a variable of ours would refer to it, and keep it.
    innermost = (sys._getframe(1), *thread_frames().values())
    for frame in chain.from_iterable(map(outwards, innermost)):
        if not str(frame.f_globals.get("__name__")).startswith(_OWN_PACKAGES):
            yield frame


def _module_of(holder: object) -> str:
    """Return the module whose variables `holder` is, as text; empty if none."""
    if type(holder) is not dict or holder.keys().isdisjoint(_MODULE_KEYS):
        return ""
    name = holder.get("__name__")
    return f"module {name}" if type(name) is str else "a module without a name"
