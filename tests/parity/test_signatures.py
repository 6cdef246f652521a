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
def test_what_is_in_python_takes_what_pytorchs_takes(module: str):
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
