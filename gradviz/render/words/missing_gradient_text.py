"""Sentences about parameters that got no gradient."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from gradviz.analysis.nodes.missing_gradients import (
    Clue,
    Cut,
    MissingGradient,
    NoGradient,
)
from gradviz.render.words.text import clean, place

#: Said of what a call was given, by `Tracking`.
_GIVEN: Final = {
    "integers": "only integers",
    "disabled": "what gradients do not lead out of, under no_grad",
    "untracked": "nothing that requires a gradient",
}


#: Sentence for each reason.
_TEXTS: Final[Mapping[NoGradient, str]] = {
    NoGradient.FROZEN: "it was frozen: requires_grad was False",
    NoGradient.NOT_ASKED: "the pass was asked for the gradients of other tensors",
    NoGradient.MODULE_NOT_CALLED: "{module} was not called since the pass before{was}",
    NoGradient.COMPILED: (
        "the graph of the pass does not have it; {module} is compiled, and calls "
        "inside it are not recorded"
    ),
    NoGradient.NO_GRAD: "{inside} ran under no_grad{at}",
    NoGradient.CUT_IN_MODULE: "nothing that {module} returned required a gradient",
    NoGradient.CUT_AFTER_MODULE: (
        "what {module} returned required a gradient, and nothing that {inside} around "
        "it returned did{clue}"
    ),
    NoGradient.NOT_USED: "{module} ran, and the graph of the pass does not have it",
    NoGradient.RESULT_NOT_USED: (
        "the pass did not go through what {module} returned{clue}"
    ),
    NoGradient.UNDEFINED: "its node was given no gradient: one before it returned None",
    NoGradient.PASS_FAILED: "the pass ended before its turn",
    NoGradient.UNKNOWN: "unknown: the trace has no calls of modules for the pass",
}

#: And of where to look.
_HINTS: Final[Mapping[NoGradient, str]] = {
    NoGradient.NO_GRAD: (
        "A checkpoint with use_reentrant=True does so as well: one of its arguments "
        "has to require a gradient."
    ),
    NoGradient.COMPILED: (
        "So its result is unused, or a detach(), .data, an integer result or NumPy "
        "ended gradients after it. Run it once without torch.compile to see where."
    ),
    NoGradient.CUT_IN_MODULE: (
        "Inside it gradients were disabled, or a detach(), .data, an integer result or "
        "NumPy ended them."
    ),
    NoGradient.CUT_AFTER_MODULE: (
        "In between, a detach(), .data, no_grad or integers ended them."
    ),
    NoGradient.NOT_USED: (
        "Its forward did not use the parameter, or only through detach(), .data or "
        "no_grad."
    ),
    NoGradient.RESULT_NOT_USED: (
        "So the loss does not use that result, or a detach(), .data, an integer result "
        "or NumPy ended gradients after it."
    ),
    NoGradient.MODULE_NOT_CALLED: (
        "So nothing used the parameter, unless a function was given it without a call "
        "of its module."
    ),
}


def missing_text(one: MissingGradient) -> str:
    """Return the reason in a few words, which begin in small letters."""
    inside = clean(one.inside or "?")
    cuts = f"; gradients ended at {_cut(one.cuts[0])}" if one.cuts else ""
    text = _TEXTS[one.reason].format(
        module=clean(one.module or "?"),
        inside=inside,
        was="" if one.inside is None else f"; {inside} was",
        at=_at(one.location),
        clue="" if cuts else _first_clue(one.clues),
    )
    return f"{text}{cuts}"


def _cut(one: Cut) -> str:
    line = clean(place(one.location)) or "an unknown line"
    return f"{clean(one.operation)} ({line})"


def _first_clue(clues: Sequence[Clue]) -> str:
    """Return the first call after it that a gradient could not leave."""
    if not clues:
        return ""
    first = clues[0]
    line = clean(place(first.location))
    return f"; {clean(first.module)} was given {_given(first)} at {line}"


def missing_hints(one: MissingGradient) -> Iterator[str]:
    """Yield sentences about where to look."""
    hint = _HINTS.get(one.reason)
    if one.cuts:
        cuts = ", ".join(map(_cut, one.cuts))
        yield f"Gradients ended there, as far as the trace tells, at: {cuts}."
    elif hint is not None:
        yield hint
    if hint is not None:
        yield from map(_clue, one.clues)


def _clue(clue: Clue) -> str:
    return (
        f"After it, {clean(clue.module)} was given {_given(clue)}{_at(clue.location)}."
    )


def _given(clue: Clue) -> str:
    return _GIVEN.get(clue.arguments, "nothing that requires a gradient")


def _at(location: str) -> str:
    return f", called at {clean(place(location))}" if location else ""
