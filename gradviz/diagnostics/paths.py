"""Paths from an object to one that it refers to, written as Python would write them.

Runs no code of the program: no property, no ``__getattr__``, and no ``__repr__`` of its
classes.
"""

import types
from collections import deque
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from gradviz.engine.graph.node import Edge
from gradviz.ops.variables.variable import Variable


class Item(NamedTuple):
    """A step to an item of a container.

    Attributes:
        key: The key or index of the item.
    """

    key: object

    def __str__(self) -> str:
        return f"[{_literal(self.key)}]"


#: Steps from an object to one that it reaches: items, and texts such as ``.history``.
Path = tuple[Item | str, ...]

_LITERALS: Final = frozenset({str, int, float, complex, bool, bytes, type(None)})
_UNKNOWN: Final = ".?"


def text_of(path: Path) -> str:
    """The text of a path, to stand behind the name of the object where it begins."""
    return "".join(map(str, path))


def extended(path: Path, holder: object, held: object) -> Path:
    """Return the path that begins one reference earlier.

    Args:
        path: The path that begins at `held`.
        holder: An object that refers to `held`.
        held: The object that it refers to.
    """
    kind = type(holder)
    if issubclass(kind, Edge | Variable | types.CellType):
        return path
    if issubclass(kind, list | tuple | deque):
        return (_index_of(held, holder), *path)
    if issubclass(kind, dict):
        key = next(keys_of(held, holder), None)
        return (_UNKNOWN if key is None else Item(key), *path)
    if issubclass(kind, set | frozenset):
        return (".<element>", *path)
    if path and isinstance(path[0], Item):
        name = _name_of_item(path[0].key, holder, held)
        if name:
            return (f".{name}", *path[1:])
    return (f".{_attribute_of(held, holder)}", *path)


def keys_of(held: object, holder: Any) -> Iterator[object]:  # noqa: ANN401 - any dictionary
    """Yield the keys under which a dictionary has an object."""
    return (key for key, one in dict.items(holder) if one is held)


def _index_of(held: object, holder: Any) -> Item | str:  # noqa: ANN401 - any sequence
    kind = next(one for one in (list, tuple, deque) if isinstance(holder, one))
    items: Iterator[object] = kind.__iter__(holder)
    index = next((i for i, one in enumerate(items) if one is held), None)
    if index is None:
        return _UNKNOWN
    fields = vars(type(holder)).get("_fields")  # of a named tuple
    return f".{fields[index]}" if isinstance(fields, tuple) else Item(index)


def _name_of_item(key: object, holder: object, held: object) -> str:
    """The name of the item of `held` as the holder has it, empty if it has none.

    Args:
        key: The key or index of the item in `held`.
        holder: An object that refers to `held`.
        held: Perhaps the attributes of the holder, or what a function refers to.
    """
    if type(holder) is types.FunctionType:
        return _name_in_function(key, holder, held)
    if type(held) is not dict:
        return ""
    is_of_class = isinstance(holder, type) and "__module__" in held
    return str(key) if is_of_class or _attributes_of(holder) is held else ""


def _name_in_function(key: Any, function: types.FunctionType, held: object) -> str:  # noqa: ANN401 - of any container
    code = function.__code__
    if held is function.__closure__:
        return f"<closure {code.co_freevars[key]}>"
    if held is function.__defaults__:
        first = code.co_argcount - len(function.__defaults__ or ())
        return f"<default {code.co_varnames[first + key]}>"
    if held is function.__kwdefaults__:
        return f"<default {key}>"
    return str(key) if held is function.__dict__ else ""


def _attribute_of(held: object, holder: object) -> str:
    """The name of the attribute by which `holder` refers to `held`."""
    for base in type(holder).__mro__:
        for name, member in vars(base).items():
            if _is_field(member, base) and _value_of(member, holder) is held:
                return name
    attributes = _attributes_of(holder) or {}
    return next((str(name) for name in keys_of(held, attributes)), "?")


def _is_field(member: object, base: type) -> bool:
    """Return whether reading a member of a class only reads memory.

    A slot of a compiled class of ours is a getter, as is a property of other C code,
    which may do anything.
    """
    is_ours = base.__module__.startswith("gradviz.")
    readable = (types.MemberDescriptorType, types.GetSetDescriptorType)
    return isinstance(member, readable[: 1 + is_ours])


def _value_of(member: Any, holder: object) -> object:  # noqa: ANN401 - a descriptor
    try:
        return member.__get__(holder)
    except AttributeError:
        return None  # it has no value yet


def _attributes_of(holder: object) -> dict[str, object] | None:
    """The ``__dict__`` of an object, None if it has none."""
    try:
        found: object = object.__getattribute__(holder, "__dict__")
    except AttributeError:
        return None
    return found if isinstance(found, dict) else None


def _literal(key: object) -> str:
    """A key as Python writes it, or its class: its own ``repr`` may do anything."""
    if type(key) is tuple:
        return f"({', '.join(map(_literal, key))})"
    return repr(key) if type(key) in _LITERALS else f"<{type(key).__name__}>"
