"""Templates: sentences with places, which several views fill from the same facts.

A place ``{took:duration}`` is the fact `took`, written as a duration. A condition
``{outcome=failed}`` writes nothing, and holds if that fact is this text. A clause in
brackets, ``[, by {giver:node}]``, is left out unless all its facts are known and its
conditions hold; so is the whole sentence for what stands outside of brackets.

The page carries templates in its data; `source/templates.ts` fills them there, with
forms of its own, which make links of nodes.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Final, NamedTuple, TypeAlias

#: Names of facts, and what is known; what is not known is not there.
Facts: TypeAlias = Mapping[str, object]

#: Forms of facts, by the name that stands behind the colon of a place.
Forms: TypeAlias = Mapping[str, Callable[[Any], str]]

_CLAUSE: Final = re.compile(r"\[([^]]*)\]")
_PLACE: Final = re.compile(r"\{(\w+)([:=])([^}]*)\}")


#: Step of a template: the text before it, then the name of a fact and a form (a place),
#: or its text by the value of that fact (a choice), or else the value that the fact
#: must have (a condition); or, without a fact, a clause. A plain tuple, which is
#: unpacked faster than one with names: each event in words takes some steps.
_TemplateStep: TypeAlias = tuple[
    str, str, str | None, Mapping[object, str] | None, "_TemplateSteps | None", str
]

#: A template or a clause: its steps, and the text behind them.
_TemplateSteps: TypeAlias = tuple[tuple[_TemplateStep, ...], str]


class Template(NamedTuple):
    """A sentence with places.

    Attributes:
        text: The sentence.
        is_alarm: True if it tells that something went wrong.
    """

    text: str
    is_alarm: bool = False


def fill(text: str, facts: Facts, forms: Forms) -> str | None:
    """Return the sentence of a template; None where the facts for it are not known."""
    return _filled(_parsed(text), facts, forms)


def first_filled(texts: Iterable[str], facts: Facts, forms: Forms) -> str:
    """Return the first template that can be filled; empty where none can."""
    for text in texts:
        said = _filled(_parsed(text), facts, forms)
        if said is not None:
            return said
    return ""


def facts_in(text: str) -> set[str]:
    """Return the names of all facts that a template asks for."""
    return {name for name, _, _ in _PLACE.findall(text)}


def forms_in(text: str) -> set[str]:
    """Return the names of all forms that a template asks for."""
    return {form for _, kind, form in _PLACE.findall(text) if kind == ":"}


def _filled(template: _TemplateSteps, facts: Facts, forms: Forms) -> str | None:
    """Write a template or a clause. Every event does: the common steps come first."""
    steps, rest = template
    said = ""
    for before, name, form, texts, clause, value in steps:
        if form is not None:
            fact = facts.get(name)
            if fact is None:
                return None
            said += before + forms[form](fact)
        elif texts is not None:
            said += before + texts.get(facts.get(name), "")
        elif clause is not None:
            said += before + (_filled(clause, facts, forms) or "")
        elif facts.get(name) == value:
            said += before
        else:
            return None
    return said + rest


@cache
def _parsed(text: str) -> _TemplateSteps:
    """Return the steps of a template."""
    steps: list[_TemplateStep] = []
    before = ""
    # The odd parts are clauses.
    for number, part in enumerate(_CLAUSE.split(text)):
        if number % 2 == 0:
            found, before = _places(before + part)
            steps += found
        else:
            _add_clause(steps, before, _places(part))
            before = ""
    return tuple(steps), before


def _places(part: str) -> _TemplateSteps:
    """Return the places and conditions of what has no clauses."""
    # Of each place the text before it, its name, its kind and what that needs.
    *found, rest = _PLACE.split(part)
    steps: list[_TemplateStep] = [
        (before, fact, needs if kind == ":" else None, None, None, needs)
        for before, fact, kind, needs in zip(*[iter(found)] * 4, strict=True)
    ]
    return tuple(steps), rest


def _add_clause(
    steps: list[_TemplateStep], before: str, clause: _TemplateSteps
) -> None:
    """Add a clause; one with nothing but a condition is a choice, of one or of more."""
    conditions, rest = clause
    if len(conditions) != 1 or conditions[0][2] is not None:
        steps.append((before, "", None, None, clause, ""))
        return
    ((inside, fact, _, _, _, value),) = conditions
    texts: dict[object, str] = {value: inside + rest}
    if steps and not before:
        start, name, _, others, _, _ = steps[-1]
        if others is not None and name == fact and value not in others:
            before, texts = start, {**others, **texts}
            del steps[-1]
    steps.append((before, fact, None, texts, None, ""))
