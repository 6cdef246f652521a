"""Explanations in sentences: of nodes that ran, and parameters that none reached."""

from collections.abc import Iterator
from typing import Final

from rich.console import Console

from gradviz.analysis.moments.explanation import Explanation
from gradviz.analysis.moments.pass_failures import PassFailure
from gradviz.analysis.nodes.missing_gradients import NoGradient
from gradviz.analysis.nodes.parameters import UnreachedParameter
from gradviz.render.terminal.cells import INDENT, make_console, print_wrapped
from gradviz.render.words.explanation_text import explanation_lines
from gradviz.render.words.failure_text import failure_sentences
from gradviz.render.words.missing_gradient_text import missing_hints, missing_text
from gradviz.render.words.not_finite_text import not_finite_text
from gradviz.render.words.text import clean, count, shape

#: Said of a parameter where the trace has no calls of modules to tell more.
_UNTRACED: Final = (
    "It required a gradient when its model was first seen. So either no result "
    "that a pass began with was computed from it, or only where no graph is made "
    "(no_grad, detach). A recording that begins before the model runs, with the "
    "events of modules, tells more."
)


def print_explanation(explanation: Explanation, console: Console | None = None) -> None:
    """Print the sentences, the first as a heading."""
    console = console or make_console()
    head, *rest = explanation_lines(explanation)
    print_wrapped(console, head.text, "bold", "")
    for one in rest:
        print_wrapped(console, one.text, "bold red" if one.is_alarm else "", INDENT)
    if explanation.gradient_norm is not None:
        norm = f"{float(explanation.gradient_norm):.4g}"
        text = f"The .grad of its leaf had the norm {norm} after the pass."
        print_wrapped(console, text, "", INDENT)
    for value in explanation.not_finite:
        text = f"Not finite: {not_finite_text(value)}."
        print_wrapped(console, text, "bold red", INDENT)


def print_failure(failure: PassFailure, console: Console | None = None) -> None:
    """Print why a pass failed, below the explanation of a node of it."""
    console = console or make_console()
    for sentence in failure_sentences(failure):
        print_wrapped(console, sentence, "", INDENT)


def print_unreached_parameter(
    parameter: UnreachedParameter, console: Console | None = None
) -> None:
    """Print the sentences, the first as a heading."""
    console = console or make_console()
    first, *rest = parameter_sentences(parameter)
    print_wrapped(console, first, "bold", "")
    for sentence in rest:
        print_wrapped(console, sentence, "", INDENT)


def parameter_sentences(one: UnreachedParameter) -> Iterator[str]:
    """Yield sentences on a parameter that a pass did not reach."""
    yield _parameter_head(one)
    if one.num_reached_by:
        yield f"Pass {one.task} did not reach it. {_reached_by(one)}"
    else:
        yield f"No pass reached it, of {count(one.num_passes, 'recorded pass')}."
    if one.num_unseen:
        yield f"The nodes of {count(one.num_unseen, 'pass')} of these were not seen."
    if one.missing is not None and one.missing.reason is not NoGradient.UNKNOWN:
        yield f"In pass {one.task}: {missing_text(one.missing)}."
        yield from missing_hints(one.missing)
    elif one.definition is not None and not one.num_reached_by:
        yield _UNTRACED


def _parameter_head(one: UnreachedParameter) -> str:
    parts = [f"Parameter {clean(' = '.join(one.parameters))}"]
    if about := one.definition:
        if about.shape is not None:
            parts.append(shape(about.shape))
        parts += [clean(about.dtype), f"on {clean(about.device)}"]
    return ", ".join(parts)


def _reached_by(one: UnreachedParameter) -> str:
    numbers = ", ".join(map(str, one.reached_by))
    if one.num_reached_by == 1:
        return f"Pass {numbers} did."
    more = one.num_reached_by - len(one.reached_by)
    return f"Passes {numbers}{f' and {more:,} more' if more else ''} did."
