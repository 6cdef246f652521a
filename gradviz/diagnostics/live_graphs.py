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

#: How many objects are asked who holds them; it takes milliseconds each.
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

    Looks at every object that the garbage collector knows, which takes a while.
    """
    # By type: `isinstance` asks a stranger's object for its class, which may be a
    # property that does anything.
    nodes = [one for one in gc.get_objects() if issubclass(type(one), Node)]
    inner = {edge.node for node in nodes for edge in node.next_edges}
    roots = [node for node in nodes if node not in inner and node.next_edges]
    search = _Search(ignored=[nodes, inner, roots])
    graphs = [
        LiveGraph(root, size_of(nodes_from([root])), search.holders(root))
        for root in roots
    ]
    return sorted(graphs, key=lambda one: (-one.size.saved_bytes, -one.size.nodes))


class _Search:
    """Looks for who holds an object, from holder to holder.

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

    def holders(self, root: Node) -> tuple[str, ...]:
        """Who holds a root, as texts, the nearest ones."""
        found: dict[str, None] = {}
        # Two lists, for a tuple would be one more holder.
        pending: list[object] = [root]
        ways = [""]
        seen = {id(root), id(pending)}
        for held, way in zip(pending, ways, strict=True):  # they grow meanwhile
            for name, where in self._variables.get(id(held), ()):
                found[f"variable {name}{way} {where}"] = None
            if len(found) >= _MAX_HOLDERS or len(pending) > _MAX_LOOKS:
                break
            referrers = gc.get_referrers(held)
            seen.add(id(referrers))
            for holder in referrers:
                if id(holder) in seen or id(holder) in self._ignored:
                    continue
                seen.add(id(holder))
                module = _module_name(holder)
                if module:
                    name = _key_of(held, holder)
                    found[f"variable {name}{way} of module {module}"] = None
                elif not issubclass(type(holder), (types.FrameType, Iterator)):
                    pending.append(holder)
                    ways.append(_way(holder, held, way))
        return tuple(found)[:_MAX_HOLDERS]


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
