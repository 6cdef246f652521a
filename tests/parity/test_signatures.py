"""Python functions and classes take the arguments that PyTorch's take."""

import inspect
import re
import warnings
from types import ModuleType
from typing import Any

import pytest

import gradviz as gv
import gradviz.utils.data
from tests.parity.worlds import torch

pytestmark = pytest.mark.parity

#: By module: what is compared.
MODULES = {
    "nn": (torch.nn, gv.nn),
    "nn.functional": (torch.nn.functional, gv.nn.functional),
    "nn.init": (torch.nn.init, gv.nn.init),
    "nn.utils": (torch.nn.utils, gv.nn.utils),
    "nn.utils.rnn": (torch.nn.utils.rnn, gv.nn.utils.rnn),
    "optim": (torch.optim, gv.optim),
    "optim.lr_scheduler": (torch.optim.lr_scheduler, gv.optim.lr_scheduler),
    "autograd": (torch.autograd, gv.autograd),
    "autograd.functional": (torch.autograd.functional, gv.autograd.functional),
    "utils.data": (torch.utils.data, gv.utils.data),
    "utils.data.dataloader": (torch.utils.data.dataloader, gv.utils.data.dataloader),
    "utils.data.dataset": (torch.utils.data.dataset, gv.utils.data.dataset),
    "utils.data.sampler": (torch.utils.data.sampler, gv.utils.data.sampler),
    "autograd.graph": (torch.autograd.graph, gv.autograd.graph),
}

#: What is another thing under the same name, or takes other things on purpose.
DIFFERENT = {
    "autograd.gradcheck": "masked is False, as None means there",
    "autograd.Function": "made by no user",
    "autograd.inference_mode": "also a decorator without parentheses",
    "autograd.variable": "a module",
    "utils.data.random_split": "its default generator is another object",
    "utils.data.dataset.random_split": "likewise",
    "nn.Buffer": "made by __new__ there",
    "nn.Module": "takes no arguments here",
    "nn.RNNBase": "its mode is a class here",
    "nn.RNNCellBase": "its number of gates is a class's here",
}


def shared(theirs: ModuleType, ours: ModuleType) -> list[str]:
    """Names of functions and classes that both have, and that say what they take."""
    return [
        name
        for name in dir(theirs)
        if name[0] != "_"
        and callable(getattr(theirs, name))
        and hasattr(ours, name)
        and signature(getattr(theirs, name)) is not None
    ]


def signature(thing: Any) -> list[str] | None:
    """The parameters as text; None if they are not said."""
    function = thing.__init__ if inspect.isclass(thing) else thing
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except ValueError:
        return None
    if inspect.isclass(thing):
        parameters = parameters[1:]
    if [one.kind for one in parameters] == [
        inspect.Parameter.VAR_POSITIONAL,
        inspect.Parameter.VAR_KEYWORD,
    ]:
        return None  # overloads: elsewhere
    named = [one for one in parameters if one.kind is inspect.Parameter.KEYWORD_ONLY]
    placed = [one for one in parameters if one not in named]
    texts = [shown(one) for one in placed if not is_implementation(one)]
    texts += sorted("*, " + shown(one) for one in named)
    for one in placed:
        if is_implementation(one):
            texts += [
                f"*, {name}={None if name in {'foreach', 'fused'} else False}"
                for name in thing._implementation
            ]
    return sorted(texts, key=lambda text: text if text.startswith("*, ") else "")


def is_implementation(one: inspect.Parameter) -> bool:
    return one.kind is inspect.Parameter.VAR_KEYWORD and one.name == "implementation"


def shown(one: inspect.Parameter) -> str:
    star = {
        inspect.Parameter.VAR_POSITIONAL: "*",
        inspect.Parameter.VAR_KEYWORD: "**",
    }.get(one.kind)
    if star:
        return star  # their names are nobody's business
    if one.default is inspect.Parameter.empty:
        return one.name
    if callable(one.default):
        return f"{one.name}={one.default.__name__!r}"
    return f"{one.name}={re.sub('(torch|gradviz)[.]', '', repr(one.default))}"


@pytest.mark.parametrize("module", MODULES)
def test_python_functions_and_classes_take_pytorchs_arguments(module: str):
    theirs, ours = MODULES[module]
    different = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = shared(theirs, ours)
        for name in names:
            if f"{module}.{name}" in DIFFERENT:
                continue
            mine = signature(getattr(ours, name))
            if mine != (expected := signature(getattr(theirs, name))):
                different[name] = (expected, mine)

    assert names
    assert different == {}


def modules() -> list[str]:
    """The modules that both have and that do something when called."""
    names = (set(dir(torch.nn)) & set(dir(gv.nn))) - {"Module", "RNNBase"}
    found = [name for name in names if hasattr(getattr(torch.nn, name), "forward")]
    is_ours = torch.nn.Module.forward
    return sorted(
        name for name in found if getattr(torch.nn, name).forward is not is_ours
    )


@pytest.mark.parametrize("name", modules())
def test_modules_are_called_with_the_names_of_pytorchs_arguments(name):
    expected, got = (
        [
            (one.name, one.kind, one.default is one.empty)
            for one in inspect.signature(getattr(lib, name).forward).parameters.values()
        ]
        for lib in (torch.nn, gv.nn)
    )
    assert got == expected


@pytest.mark.parametrize("sizes", [[7], [8], [6], [9], [2, 3, 8], [2, 3]])
def test_a_transposed_convolution_has_the_size_that_is_asked_for(sizes):
    def outcome(lib: Any) -> Any:
        module = lib.nn.ConvTranspose1d(2, 3, 3, stride=2, padding=1)
        try:
            return tuple(module(lib.ones(2, 2, 4), sizes).shape)
        except ValueError as error:
            return str(error).replace(lib.__name__, "")

    assert outcome(gv) == outcome(torch)


@pytest.mark.parametrize(
    "call",
    [
        lambda lib, x: lib.fill_(input=x, value=3),
        lambda lib, x: lib.zero_(input=x),
        lambda lib, x: lib.detach_(input=x),
        lambda lib, x: lib.resize_as_(input=x, the_template=x),
        lambda lib, x: lib.is_conj(input=x),
        lambda lib, x: lib.is_neg(input=x),
        lambda lib, x: lib.is_signed(input=x),
        lambda lib, x: lib.is_same_size(input=x, other=x),
        lambda lib, x: lib.is_nonzero(input=x[0, 0]),
        lambda lib, x: x.hsplit(1, 2),
        lambda lib, x: x.vsplit(1, 2),
        lambda lib, x: x.hsplit(2),
        lambda lib, x: lib.ones(x),
        lambda lib, x: lib.atleast_1d(x, 1),
        lambda lib, x: lib.block_diag(x, 1),
        lambda lib, x: lib.broadcast_tensors(x, 1),
        lambda lib, x: lib.meshgrid(x[0], 1),
        lambda lib, x: lib.cartesian_prod(x[0], 1),
    ],
)
def test_a_function_takes_what_pytorchs_takes(call):
    def outcome(lib: Any) -> str:
        try:
            found = call(lib, lib.ones(2, 2))
        except TypeError as error:
            return str(error)
        if not isinstance(found, tuple):
            found = (found,)
        return str([one if isinstance(one, bool) else one.tolist() for one in found])

    assert outcome(gv) == outcome(torch)
