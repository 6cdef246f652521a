"""Graphs that are alive, and who holds them: for memory that grows."""

import gc
import operator
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from gradviz.diagnostics.graph import describe, nodes_from
from gradviz.diagnostics.size import GraphSize, size_of
from gradviz.engine.node import Edge, Node
from gradviz.ops.recording.variable import Variable

#: Of so many objects between a graph and who holds it all holders are looked for.
_MAX_LOOKS: Final = 20
_MAX_HOLDERS: Final = 5


class LiveGraph(NamedTuple):
    """A graph that is alive; prints as text.

    Attributes:
        root: The node at which a backward would begin.
        size: Of what can be reached from there.
        holders: Who holds the root, a text each.
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


def live_graphs() -> list[LiveGraph]:
    """All graphs that are alive, the largest first.

    Looks at every object that the garbage collector knows, some ten times: a second
    for a million objects, however many graphs there are.
    """
    # By type: `isinstance` asks a stranger's object for its class, which may be a
    # property that does anything.
    nodes = [one for one in gc.get_objects() if issubclass(type(one), Node)]
    inner = {edge.node for node in nodes for edge in node.next_edges}
    roots = [node for node in nodes if node not in inner and node.next_edges]
    search = _Search(ignored=[nodes, inner, roots])
    graphs = [
        LiveGraph(root, size_of(nodes_from([root])), holders)
        for root, holders in zip(roots, search.holders(roots), strict=True)
    ]
    return sorted(graphs, key=lambda one: (-one.size.saved_bytes, -one.size.nodes))


class _Held(NamedTuple):
    """An object by which a root is held.

    Attributes:
        it: The object.
        way: How the root is reached from it.
        root: What has been found out of that root.
    """

    it: object
    way: str
    root: "_Root"


class _Root:
    """What is known of who holds a root.

    Attributes:
        found: Texts, the nearest holders first.
        seen: Ids of the objects that were looked at.
    """

    def __init__(self, node: Node) -> None:
        self.found: dict[str, None] = {}
        self.seen = {id(node)}

    @property
    def is_done(self) -> bool:
        """Whether enough is known."""
        return len(self.found) >= _MAX_HOLDERS or len(self.seen) > _MAX_LOOKS


class _Search:
    """Looks for who holds objects, from holder to holder.

    Args:
        ignored: Objects of the search itself.
    """

    def __init__(self, ignored: Sequence[object]) -> None:
        self._ignored = {id(one) for one in ignored} | {id(self.__dict__)}
        self._variables: dict[int, list[tuple[str, str]]] = {}
        for frame in _frames():
            self._note(frame)

    def _note(self, frame: types.FrameType) -> None:
        """Remember what the variables of a function that runs refer to.

        The garbage collector does not know that they do.
        """
        variables = frame.f_locals
        self._ignored |= {id(frame), id(variables)}
        if variables is frame.f_globals:
            return  # a module, which is found without our help
        code = frame.f_code
        where = f"of {code.co_name}() at {code.co_filename}:{frame.f_lineno}"
        for name, value in variables.items():
            self._variables.setdefault(id(value), []).append((name, where))

    def holders(self, nodes: Sequence[Node]) -> list[tuple[str, ...]]:
        """Who holds each of some roots, as texts, the nearest ones."""
        roots = [_Root(node) for node in nodes]
        level = [_Held(node, "", root) for node, root in zip(nodes, roots, strict=True)]
        # To ask Python who refers to one object takes as long as to look once at what
        # all objects refer to. So all roots go one step at a time, together.
        while level := [held for held in level if not self._is_found(held)]:
            level = self._step(level)
        return [tuple(root.found)[:_MAX_HOLDERS] for root in roots]

    def _is_found(self, held: _Held) -> bool:
        """Whether enough is known of a root, now that `held` is."""
        for name, where in self._variables.get(id(held.it), ()):
            held.root.found[f"variable {name}{held.way} {where}"] = None
        return held.root.is_done

    def _step(self, level: list[_Held]) -> list[_Held]:
        """Who holds those of a level, as far as they are no modules."""
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
    if id(holder) in root.seen or root.is_done:
        return None
    root.seen.add(id(holder))
    module = _module_name(holder)
    if module:
        name = _key_of(held.it, holder)
        root.found[f"variable {name}{held.way} of module {module}"] = None
        return None
    if issubclass(type(holder), (types.FrameType, Iterator)):
        return None
    return _Held(holder, _way(holder, held.it, held.way), root)


def _frames() -> Iterator[types.FrameType]:
    """The functions that run, on all threads, but not those of this module.

    CPython waits for ever for itself if a collection begins while it lists frames; see
    Note [Stacks without frames] in `gradviz.engine.sync`, which tells no variables. So
    there are no collections meanwhile. One call of C follows the other here: between
    them no other thread can run, which might switch collections on again.
    """
    steps: tuple[Callable[[], Any], ...]
    steps = (gc.isenabled, gc.disable, sys._current_frames)
    was_enabled, _, innermost = map(operator.call, steps)
    if was_enabled:
        gc.enable()
    for start in innermost.values():
        frame: types.FrameType | None = start
        while frame is not None:
            if frame.f_globals is not globals():
                yield frame
            frame = frame.f_back


def _module_name(holder: object) -> str:
    """The name of the module whose variables `holder` is, empty if it is none."""
    if isinstance(holder, dict) and "__name__" in holder and "__builtins__" in holder:
        return str(holder["__name__"])
    return ""


def _way(holder: object, held: object, way: str) -> str:
    """How the root is reached from `holder`, given how it is from `held`."""
    match holder:
        case Edge() | Variable() | types.CellType():
            return way
        case list() | tuple():
            place = next((i for i, one in enumerate(holder) if one is held), "?")
            return f"[{place}]{way}"
        case dict():
            return f"[{_key_of(held, holder)!r}]{way}"
        case _ if held is getattr(holder, "__dict__", None):
            name, rest = way.removeprefix("['").split("']", 1)
            return f".{name}{rest}"
        case _:
            return f".{_attribute_of(held, holder)}{way}"


def _key_of(held: object, holder: Any) -> str:  # noqa: ANN401 - any mapping
    return next((str(key) for key, one in holder.items() if one is held), "?")


def _attribute_of(held: object, holder: object) -> str:
    """The name of the attribute by which `holder` refers to `held`."""
    names = [
        name
        for base in type(holder).__mro__
        for name in vars(base).get("__slots__", ())
    ]
    names += list(getattr(holder, "__dict__", {}))
    return next((one for one in names if getattr(holder, one, None) is held), "?")
