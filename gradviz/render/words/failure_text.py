"""Sentences about why a pass failed."""

from collections.abc import Iterator

from gradviz.analysis.moments.pass_failures import Change, MadeNode, PassFailure
from gradviz.render.words.text import clean, count, place


def failure_sentences(one: PassFailure) -> Iterator[str]:
    """Yield what the trace tells of the cause of an error."""
    if one.kind == "released":
        yield from _released(one)
    elif one.kind == "changed in place":
        yield from _changed(one)
    else:
        yield from _without_gradient(one)


def _released(one: PassFailure) -> Iterator[str]:
    if one.node is None or one.released_by is None:
        yield (
            f"Pass {one.task} needs what a node had saved; the trace has no earlier "
            f"pass that released it. Recorded from the first pass on, it would."
        )
        return
    yield (
        f"Pass {one.released_by}{_at(', called at', one.released_at)}, ran "
        f"{_node(one.node)} before, without retain_graph, and so released what it had "
        f"saved."
    )
    if one.is_same_graph:
        yield (
            f"Pass {one.task}{_at(', called at', one.called_at)} is a second pass "
            f"through the same graph: call the first one with retain_graph=True, or "
            f"add the losses up and call backward once."
        )
    for each in one.carriers:
        yield (
            f"{_node(each.user)} carried the graph over: it was made with the result "
            f"of {_node(each.used)}, which pass {one.released_by} had run."
        )
    if one.carriers:
        yield "If no gradient is to flow back that far, detach() that result."


def _changed(one: PassFailure) -> Iterator[str]:
    if one.node is not None:
        yield f"{_node(one.node)} had saved the tensor, and it was changed since then."
    yield from map(_change, one.changes)
    for step in one.steps:
        names = ", ".join(clean(name) or "a tensor" for name in step.parameters)
        yield (
            f"{clean(step.optimizer)}.step() ran after the forward and before pass "
            f"{one.task}, and changes its parameters in place; of this shape it holds "
            f"{names}."
        )
    if not one.steps and not one.changes:
        yield (
            "The trace does not have the operation: look after that line for one in "
            "place (+=, a name that ends in _, out=), on the tensor or on another that "
            "shares its memory."
        )


def _change(one: Change) -> str:
    made = f"{clean(one.operation)}{_at(', made at', one.location)} later, is"
    match one.ground:
        case "recorded":
            line = clean(place(one.location)) or "an unknown line"
            return f"It was changed in place at {line}."
        case "alike":
            return f"{made} the last operation of a tensor of that shape and version."
        case "last user":
            return (
                f"{made} the last operation that was given that tensor: if it works in "
                f"place, it is the one that changed it."
            )


def _without_gradient(one: PassFailure) -> Iterator[str]:
    module = clean(one.result_of)
    match one.result:
        case "tracked":
            yield (
                f"What {module} returned required a gradient: it ended between there "
                f"and the call of pass {one.task}{_at(' at', one.called_at)}, by a "
                f"detach(), .data, .item(), integers, NumPy or no_grad."
            )
        case "disabled":
            line = _at(", called at", one.location)
            yield f"{module} ran under no_grad{line}."
        case "integers":
            yield f"{module} returned only integers, which have no gradients."
        case "untracked":
            yield f"Nothing that {module} returned required a gradient."
        case _:
            yield (
                "The trace has no call of a module that made the loss, so where its "
                "gradient ended is not known."
            )
    if one.result in {"integers", "untracked"}:
        yield from _inside(one)


def _inside(one: PassFailure) -> Iterator[str]:
    """Yield what calls inside of a module tell of where the gradient ended."""
    if one.disabled is not None:
        line = _at(", called at", one.location)
        yield f"Inside of it {clean(one.disabled)} ran under no_grad{line}."
    elif one.module is not None:
        yield (
            f"What {clean(one.module)} returned inside of it did: after that a "
            f"detach(), .data, integers, NumPy or no_grad ended it."
        )
    elif one.num_parameters and one.num_frozen == one.num_parameters:
        yield f"All of its {count(one.num_frozen, 'parameter')} were frozen."


def _node(one: MadeNode) -> str:
    number = "" if one.index is None else f"#{one.index} "
    line = _at(", made at", one.location)
    return f"{number}{clean(one.name)} (id {one.node}{line})"


def _at(words: str, location: str) -> str:
    return f"{words} {clean(place(location))}" if location else ""
