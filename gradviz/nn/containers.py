"""Modules that hold other modules: in a row, a list, a dict."""

import itertools
import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self, overload

from gradviz.nn.module import Module
from gradviz.tensors.tensor import Tensor


class _List(Module):
    """Members in a row, called ``0``, ``1`` and so on."""

    def _index(self, index: int) -> str:
        length = len(self)
        place = operator.index(index)
        if not -length <= place < length:
            raise IndexError(f"index {place} is out of range")
        return str(place % length)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._index(index), module)

    def __delitem__(self, index: int | slice) -> None:
        modules = list(self)
        if isinstance(index, slice):
            del modules[index]
        else:
            del modules[int(self._index(index))]
        self._set(modules)

    def _set(self, modules: Iterable[Module]) -> None:
        """Hold these modules and no others."""
        self._modules.clear()
        for place, module in enumerate(modules):
            self.add_module(str(place), module)

    def append(self, module: Module) -> Self:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add several modules at the end."""
        for module in list(modules):
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Self | None:
        """Add a module before the one at `index`."""
        modules = list(self)
        modules.insert(index, module)
        self._set(modules)
        return self

    @overload
    def pop(self, key: int) -> Module: ...
    @overload
    def pop(self, key: slice) -> Self: ...
    def pop(self, key: int | slice) -> Any:
        """Take a module out."""
        module = self[key]
        del self[key]
        return module

    @overload
    def __getitem__(self, index: int) -> Module: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)._of(list(self._modules.items())[index])
        return self._modules[self._index(index)]

    @classmethod
    def _of(cls, items: list[tuple[str, Any]]) -> Self:
        new = cls()
        new._set(module for _, module in items)
        return new


class Sequential(_List):
    """Modules in a row, each applied to the result of the one before it.

    Args:
        *modules: The modules, or one dict of them by their names.
    """

    @overload
    def __init__(self, *modules: Module) -> None: ...
    @overload
    def __init__(self, modules: Mapping[str, Module], /) -> None: ...
    def __init__(self, *modules: Any) -> None:
        super().__init__()
        match modules:
            case (Mapping() as named,):
                for name, module in named.items():
                    self.add_module(name, module)
            case _:
                for place, module in enumerate(modules):
                    self.add_module(str(place), module)

    def forward(self, input: Any) -> Tensor:
        """Return the output of the last module."""
        for module in self:
            input = module(input)
        return input

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._key(index), module)

    @overload
    def __getitem__(self, index: int) -> Module: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)._of(list(self._modules.items())[index])
        return self._modules[self._key(index)]

    def __add__(self, other: "Sequential") -> "Sequential":
        return Sequential(*self, *other)

    def _key(self, index: int) -> str:
        return next(itertools.islice(self._modules, int(self._index(index)), None))

    @classmethod
    def _of(cls, items: list[tuple[str, Any]]) -> Self:
        return cls(dict(items))


class ModuleList(_List):
    """A list of modules, which does not say how they are called.

    Args:
        modules: Modules in it.
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        self.extend(modules or ())

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> "ModuleList":
        return ModuleList([*self, *other])

    def _child_texts(self) -> list[tuple[str, str]]:
        """Modules in a row that print the same are one entry."""
        texts = []
        for text, same in itertools.groupby(super()._child_texts(), lambda one: one[1]):
            (first, _), *others = same
            if others:
                count = f"{len(others) + 1} x {text}"
                texts.append((f"{first}-{others[-1][0]}", count))
            else:
                texts.append((first, text))
        return texts


class ModuleDict(Module):
    """A dict of modules, which does not say how they are called.

    Args:
        modules: Modules in it.
    """

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        self.update(modules or {})

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        if key not in self._modules:
            raise KeyError(key)
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Take all modules out."""
        for key in list(self._modules):
            del self[key]

    def pop(self, key: str) -> Module:
        """Take a module out."""
        module = self[key]
        del self[key]
        return module

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._modules.keys()

    def items(self) -> Iterable[tuple[str, Module]]:
        """Names and modules."""
        return self._modules.items()

    def values(self) -> Iterable[Module]:
        """The modules."""
        return self._modules.values()

    def update(
        self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]
    ) -> None:
        """Add modules, or replace those of the same name.

        Raises:
            TypeError: They cannot be iterated.
        """
        if not isinstance(modules, Iterable):
            raise TypeError(
                f"ModuleDict.update should be called with an iterable of key/value "
                f"pairs, but got {type(modules).__name__}"
            )
        for key, module in dict(modules).items():
            self[key] = module
