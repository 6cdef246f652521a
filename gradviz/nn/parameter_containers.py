"""Lists and dicts of parameters, which a module has among its own."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from gradviz.nn.module import Module
from gradviz.nn.parameter import Parameter
from gradviz.tensors.tensor import Tensor


class ParameterList(Module):
    """A list of parameters; tensors become parameters, other values are just kept.

    Args:
        values: Values in it.

    Source: torch/nn/modules/container.py.
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        self.extend(values or ())

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return (self[place] for place in range(len(self)))

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return getattr(self, self._place(index))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, self._place(index), _kept(value))

    def __iadd__(self, values: Iterable[Any]) -> Self:
        return self.extend(values)

    def append(self, value: Any) -> Self:
        """Add a value at the end."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Add several values at the end.

        Raises:
            TypeError: They cannot be iterated.
        """
        if isinstance(values, Tensor) or not isinstance(values, Iterable):
            raise TypeError(
                f"ParameterList.extend should be called with an iterable, but got "
                f"{type(values).__name__}"
            )
        for value in list(values):
            self.append(value)
        return self

    def pop(self, index: int = -1) -> Any:
        """Take a value out."""
        values = list(self)
        value = values.pop(index)
        for place in range(len(values), len(self)):
            delattr(self, str(place))
        self._size = len(values)
        for place, one in enumerate(values):
            self[place] = one
        return value

    def extra_repr(self) -> str:
        """A line for each."""
        lines = []
        for place, one in enumerate(self):
            kind = f"{one.dtype}" if isinstance(one, Tensor) else ""
            lines.append(f"  ({place}): {_text(one, kind)}")
        return "\n".join(lines)

    def _place(self, index: int) -> str:
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} is out of range")
        return str(index % len(self))


class ParameterDict(Module):
    """A dict of parameters; tensors become parameters, other values are just kept.

    Args:
        parameters: Parameters in it, by names.

    Source: torch/nn/modules/container.py.
    """

    def __init__(
        self, parameters: Mapping[str, Any] | Iterable[tuple[str, Any]] | None = None
    ) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        self.update(parameters or {})

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys:
            raise KeyError(key)
        return getattr(self, key)

    def __setitem__(self, key: str, value: Any) -> None:
        if not isinstance(key, str):
            raise TypeError(
                f"Index given to ParameterDict cannot be used as a key as it is not a "
                f"string (type is '{type(key).__name__}'). Open an issue on github if "
                f"you need non-string keys."
            )
        setattr(self, key, _kept(value))
        self._keys[key] = None

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __or__(self, other: "ParameterDict") -> "ParameterDict":
        return ParameterDict([*self.items(), *other.items()])

    def __ior__(self, other: "ParameterDict") -> Self:
        self.update(other.items())
        return self

    def copy(self) -> "ParameterDict":
        """Another dict of the same parameters."""
        return ParameterDict(dict(self.items()))

    def get(self, key: str, default: Any = None) -> Any:
        """Return the parameter of this name, or `default`."""
        return getattr(self, key) if key in self._keys else default

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return the parameter of this name; if there is none, set it to `default`."""
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: str) -> Any:
        """Take a value out."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Take the last value out, with its name."""
        key = next(reversed(self))
        return key, self.pop(key)

    def clear(self) -> None:
        """Take all values out."""
        for key in list(self):
            del self[key]

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._keys.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Names and values."""
        return [(key, self[key]) for key in self]

    def values(self) -> Iterable[Any]:
        """The values."""
        return [self[key] for key in self]

    def update(self, parameters: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        """Add values, or replace those of the same name."""
        given = parameters.items() if hasattr(parameters, "items") else parameters
        for key, value in list(given):
            self[key] = value

    def extra_repr(self) -> str:
        """A line for each."""
        return "\n".join(
            f"  ({key}): {_text(one, one.type() if isinstance(one, Tensor) else '')}"
            for key, one in self.items()
        )


def _kept(value: Any) -> Any:
    is_plain = isinstance(value, Tensor) and not isinstance(value, Parameter)
    return Parameter(value) if is_plain else value


def _text(value: Any, kind: str) -> str:
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    size = "x".join(map(str, value.shape))
    device = "" if value.device.type == "cpu" else f" ({value.device})"
    return f"Parameter containing: [{kind} of size {size}{device}]"
