"""Calls of hooks in words."""

from collections.abc import Iterator, Sequence
from typing import Final

from gradviz.analysis.tables.hook_calls import HookCall
from gradviz.render.words.text import MAX_TITLE, clean, duration, place, shorten
from gradviz.trace.probe import INFERRED_SUFFIX

_KINDS: Final = {
    "tensor_pre": "tensor hook",
    "retains_grad": "hook that retains a gradient",
    "pre": "pre-hook of the node",
    "post": "post-hook of the node",
    "post_accumulate_grad": "post-accumulate-grad hook",
    "module_pre": "backward pre-hook",
    "module": "backward hook",
}

#: Said of a hook whose function is not known.
UNNAMED: Final = "a function without a known name"


def hook_texts(calls: Sequence[HookCall], more: int) -> Iterator[str]:
    """Yield what each hook is, where it comes from and how long it took."""
    for one in calls:
        yield f"{hook_name(one)}{_lines(one)}, {_kind(one)}, {_took(one)}"
    if more:
        yield f"and {more:,} more"


def hook_name(one: HookCall) -> str:
    """Return the name of a hook's function."""
    return shorten(clean(one.function), MAX_TITLE) or UNNAMED


def _lines(one: HookCall) -> str:
    parts = [clean(place(one.defined_at))] if one.defined_at else []
    if one.registered_at:
        parts.append(f"registered at {clean(place(one.registered_at))}")
    return f" ({', '.join(parts)})" if parts else ""


def _kind(one: HookCall) -> str:
    of = f" of {shorten(clean(one.target), MAX_TITLE)}" if one.target else ""
    return f"{_KINDS[one.kind]}{of}"


def _took(one: HookCall) -> str:
    inferred = INFERRED_SUFFIX if one.inferred else ""
    if one.took_ns is not None:
        return f"{duration(one.took_ns)}{inferred}"
    if one.together_ns is not None:
        return f"together with others {duration(one.together_ns)}{inferred}"
    return "time unknown"
