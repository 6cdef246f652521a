"""Sentences on values that are not finite."""

from gradviz.analysis.training.not_finite import NotFiniteValue
from gradviz.render.words.text import clean, place

_VALUES = {"nan": "NaN", "infinity": "infinity"}


def not_finite_text(one: NotFiniteValue) -> str:
    """Return a sentence on a value: which, where, and the magnitudes of its inputs."""
    step = "" if one.step is None else f"step {one.step}: "
    line = f" at {clean(place(one.location))}" if one.location else ""
    module = f" in {clean(one.module)}" if one.module else ""
    inputs = f"; {_inputs(one)}" if one.largest is not None else ""
    return f"{step}{_VALUES[one.value]} in {_subject(one)}{line}{module}{inputs}"


def _subject(one: NotFiniteValue) -> str:
    name = clean(one.name)
    number = "" if one.index is None else f" #{one.index}"
    in_pass = "" if one.task < 0 else f" of pass {one.task}"
    which = "" if one.position <= 0 else f" {one.position}"
    match one.what:
        case "result":
            return f"the result{which} of {name}"
        case "gradient":
            return f"the gradient of input {one.position} of {name}{number}{in_pass}"
        case "sum":
            return f"the gradient{which} that {name}{number}{in_pass} was given"
        case "parameter":
            return f"parameter {name} after a step of the optimizer"
        case _:
            return f"the loss{which}{in_pass}"


def _inputs(one: NotFiniteValue) -> str:
    assert one.largest is not None
    low, high = f"{one.smallest or 0.0:.3g}", f"{one.largest:.3g}"
    others = ", and infinities" if one.given_infinity else ""
    span = f"up to {high}" if low == high else f"from {low} to {high}"
    return f"its inputs had magnitudes {span}{others}"
