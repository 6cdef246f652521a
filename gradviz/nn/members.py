"""Members of a module: parameters, buffers and other modules, each by its name."""

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

from gradviz.nn import naming
from gradviz.nn.parameter import Buffer, Parameter
from gradviz.ops.conventions.dtype_names import scalar_type_name
from gradviz.tensors.tensor import Tensor

T = TypeVar("T")


class Members:
    """Keeps the values assigned to its attributes, by kind.

    Attributes:
        training: True if the module is in training mode, False in evaluation mode.

    Source: torch/nn/modules/module.py.
    """

    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _non_persistent_buffers_set: set[str]
    _modules: dict[str, Any]  # of Module, which is defined above this

    def __init__(self) -> None:
        own = self.__dict__
        own["training"] = True
        own["_parameters"] = {}
        own["_buffers"] = {}
        own["_non_persistent_buffers_set"] = set()
        own["_modules"] = {}

    # --- giving it something ----------------------------------------------------------

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter, or None where there could be one.

        Raises:
            TypeError: `param` is no Parameter, or `name` not a string.
            KeyError: The name is taken, or not possible.
            ValueError: An op made `param`.
        """
        known = self._known("_parameters", "parameter")
        _check_name(name, "parameter")
        self._check_free(name, known)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{typename(param)}' object to parameter '{name}' "
                f"(gradviz.nn.Parameter or None required)"
            )
        if param is not None and param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model "
                f"parameters must be created explicitly. To express '{name}' as a "
                f"function of another Tensor, compute the value in the forward() "
                f"method."
            )
        known[name] = param
        naming.forget()

    def register_buffer(
        self, name: str, tensor: Tensor | None, persistent: bool = True
    ) -> None:
        """Add a tensor that belongs to the module's state and is not trained.

        Args:
            name: Of the attribute.
            tensor: Tensor that it holds.
            persistent: True if it is part of the ``state_dict``.

        Raises:
            TypeError: `tensor` is not a tensor, or `name` not a string.
            KeyError: The name is taken, or not possible.
        """
        known = self._known("_buffers", "buffer")
        _check_name(name, "buffer")
        self._check_free(name, known)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' "
                f"(gradviz Tensor or None required)"
            )
        known[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: "Members | None") -> None:
        """Add a module as a child.

        Raises:
            TypeError: `module` is not a module, or `name` not a string.
            KeyError: The name is taken, or not possible.
        """
        known = self._known("_modules", "module")
        if module is not None and not isinstance(module, Members):
            raise TypeError(f"{typename(module)} is not a Module subclass")
        _check_name(name, "module")
        self._check_free(name, known)
        known[name] = module
        naming.forget()

    def register_module(self, name: str, module: "Members | None") -> None:
        """Another name of `add_module`."""
        self.add_module(name, module)

    def __setattr__(self, name: str, value: object) -> None:
        kind = self._kind_of(name)
        if isinstance(value, Parameter):
            self._known("_parameters", "parameters")
            self._discard(name, but="_parameters")
            self.register_parameter(name, value)
        elif isinstance(value, Buffer) and kind in {None, "_buffers"}:
            self._discard(name, but="_buffers")
            self.register_buffer(name, value, value.persistent)
        elif isinstance(value, Members) and kind != "_parameters":
            self._known("_modules", "module")[name] = value
            self._discard(name, but="_modules")
        elif kind is not None:
            self._replace(kind, name, value)
        else:
            object.__setattr__(self, name, value)

    def _replace(self, kind: str, name: str, value: object) -> None:
        """Put None or, in a buffer's place, a tensor where a member was."""
        what, required = _KINDS[kind]
        if value is not None and not (kind == "_buffers" and isinstance(value, Tensor)):
            raise TypeError(
                f"cannot assign '{typename(value)}' as {what} '{name}' "
                f"({required} expected)"
            )
        self.__dict__[kind][name] = value
        naming.forget()

    def _kind_of(self, name: str) -> str | None:
        """Among which members there is one of this name, None if it is not a member."""
        for kind in _KINDS:
            if name in self.__dict__.get(kind, ()):
                return kind
        return None

    def _discard(self, name: str, *, but: str = "") -> None:
        """Remove the member of this name, except among the members `but`."""
        self.__dict__.pop(name, None)
        for kind in _KINDS:
            if kind != but:
                self.__dict__[kind].pop(name, None)
        self._non_persistent_buffers_set.discard(name)
        naming.forget()

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        for kind in _KINDS:
            members = own.get(kind)
            if members is not None and name in members:
                return members[name]
        raise AttributeError(
            f"'{type(self).__name__}' object has no attribute '{name}'"
        )

    def __delattr__(self, name: str) -> None:
        if self._kind_of(name) is None:
            object.__delattr__(self, name)
        else:
            self._discard(name)

    def __dir__(self) -> list[str]:
        own = {*dir(type(self)), *self.__dict__}
        own.update(self._parameters, self._buffers, self._modules)
        return sorted(name for name in own if not name[:1].isdigit())

    def _known(self, members: str, kind: str) -> dict[str, Any]:
        if members not in self.__dict__:
            raise AttributeError(f"cannot assign {kind} before Module.__init__() call")
        known: dict[str, Any] = self.__dict__[members]
        return known

    def _check_free(self, name: str, known: dict[str, Any]) -> None:
        if name not in known and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")

    # --- what it has ------------------------------------------------------------------

    def named_modules(
        self,
        memo: set[Any] | None = None,
        prefix: str = "",
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        """This module and all below it, with their names from here: parents first."""
        seen = set() if memo is None else memo
        if self in seen:
            return
        if remove_duplicate:
            seen.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                inner = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(seen, inner, remove_duplicate)

    def modules(self) -> Iterator[Any]:
        """This module and all below it, each once."""
        return (module for _, module in self.named_modules())

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """The modules directly below, each once, with their names."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Any]:
        """The modules directly below, each once."""
        return (module for _, module in self.named_children())

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """The parameters of this module and all below it, with their names."""
        return self._named_members(
            lambda module: module._parameters, prefix, recurse, remove_duplicate
        )

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters of this module and all below it, each once."""
        return (parameter for _, parameter in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """The buffers of this module and all below it, with their names."""
        return self._named_members(
            lambda module: module._buffers, prefix, recurse, remove_duplicate
        )

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers of this module and all below it, each once."""
        return (buffer for _, buffer in self.named_buffers(recurse=recurse))

    def _named_members(
        self,
        members_of: "Callable[[Members], dict[str, T | None]]",
        prefix: str,
        recurse: bool,
        remove_duplicate: bool,
    ) -> Iterator[tuple[str, T]]:
        seen = set()
        modules = (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
            if recurse
            else [(prefix, self)]
        )
        for path, module in modules:
            for name, member in members_of(module).items():
                if member is None or id(member) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(member))
                yield f"{path}.{name}" if path else name, member

    def get_submodule(self, target: str) -> Any:
        """The module of that name from here, such as ``encoder.0``.

        Raises:
            AttributeError: There is none.
        """
        module: Members = self
        for name in target.split(".") if target else ():
            found = getattr(module, name, module)
            if found is module:
                raise AttributeError(
                    f"{type(module).__name__} has no attribute `{name}`"
                )
            if not isinstance(found, Members):
                raise AttributeError(f"`{name}` is not an nn.Module")
            module = found
        return module

    def get_parameter(self, target: str) -> Parameter:
        """The parameter of that name from here, such as ``encoder.0.weight``.

        Raises:
            AttributeError: There is none.
        """
        found = self._get(target)
        if not isinstance(found, Parameter):
            name = target.rpartition(".")[2]
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """The buffer of that name from here, such as ``1.running_mean``.

        Raises:
            AttributeError: There is none.
        """
        path, _, name = target.rpartition(".")
        found = self._get(target)
        if name not in self.get_submodule(path)._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return found

    def _get(self, target: str) -> Any:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
        return getattr(module, name)


#: Places where members are kept, by kind: the name of one, and the types that may take
#: its place.
_KINDS: Final = {
    "_parameters": ("parameter", "gradviz.nn.Parameter or None"),
    "_buffers": ("buffer", "gradviz.nn.Buffer, gradviz.Tensor or None"),
    "_modules": ("child module", "gradviz.nn.Module or None"),
}


def typename(value: object) -> str:
    """Return the name of a value's type as in PyTorch's errors."""
    if isinstance(value, Tensor):
        return f"gradviz.{scalar_type_name(value.dtype)}Tensor"
    cls = type(value)
    if cls.__module__ == "builtins":
        return cls.__qualname__
    return f"{cls.__module__}.{cls.__qualname__}"


def _check_name(name: object, kind: str) -> None:
    if not isinstance(name, str):
        raise TypeError(f"{kind} name should be a string. Got {typename(name)}")
    if "." in name:
        got = f", got: {name}" if kind == "module" else ""
        raise KeyError(f'{kind} name can\'t contain "."{got}')
    if not name:
        raise KeyError(f'{kind} name can\'t be empty string ""')
