"""Running one program with PyTorch and with gradviz, and comparing what comes of it.

A program is a function of the namespace (``torch`` or ``gradviz``). What it returns is
made plain, so that it can be compared: of a tensor its numbers, whether it needs a
gradient, and the name of its node. If it raises, the type and text of the error count.
"""

import importlib.util
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gradviz as gv

# Whoever imports this module is skipped where there is no PyTorch to compare with.
torch = pytest.importorskip("torch")
pytest.importorskip("torch.utils.checkpoint")

Program = Callable[[Any], Any]

#: Said by PyTorch once in a process and by gradviz once in an engine, so which test
#: sees it depends on those before. tests/engine/test_engine.py has the one of gradviz.
_ONCE = "will create a reference cycle between the parameter and its gradient"


def plain(value: Any) -> Any:
    """`value` without what belongs to one of the two packages."""
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, (torch.Tensor, gv.Tensor)):
        node = value.grad_fn and value.grad_fn.name().rpartition("::")[2]
        return (_rounded(value.detach().tolist()), value.requires_grad, node)
    return value


def outcome(program: Program, lib: Any) -> Any:
    """Return the result or error of `program`, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = plain(program(lib))
        except Exception as error:  # noqa: BLE001 - which one is what is compared
            result = (type(error).__name__, spelled_alike(str(error)))
    texts = [
        spelled_alike(str(one.message)).partition(" (Triggered")[0] for one in caught
    ]
    return result, sorted({one for one in texts if _ONCE not in one})


def same_in_both(program: Program) -> Any:
    """Return the outcome of `program`, which must be the same with both."""
    theirs, ours = outcome(program, torch), outcome(program, gv)
    assert ours == theirs, f"gradviz: {ours}\nPyTorch: {theirs}"
    return theirs


def spelled_alike(message: str) -> str:
    """`message` without what the two call their own things."""
    message = re.sub(r"(?:torch|gradviz)\.Size\((\[.*?\])\)", r"\1", message)
    message = _OWN_FRAMES.sub("", message)
    message = re.sub(r"<class '.*?(\w+)'>", r"\1", message)
    message = re.sub(r"\b(gradviz|torch)\.(?=\w)", "", message)
    return re.sub(r" \(was .* got .*\)", "", message)


#: In a stack that is quoted, the lines of PyTorch's own code; gradviz quotes none.
_TORCH = importlib.util.find_spec("torch")
_ITS_FOLDER = re.escape(str(Path(_TORCH.origin).parent)) if _TORCH else "nowhere"
_OWN_FRAMES = re.compile(rf'  File "{_ITS_FOLDER}/.*\n(?:    .*\n)*')


def _rounded(numbers: Any) -> Any:
    if isinstance(numbers, list):
        return [_rounded(one) for one in numbers]
    return round(numbers, 9) if isinstance(numbers, float) else numbers
