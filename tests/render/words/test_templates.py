import pytest

from gradviz.render.words.templates import fill, forms_in

FORMS = {"text": str, "ms": lambda ns: f"{ns / 1e6:g} ms"}
TEMPLATE = "{was=run}It ran for {took:ms}[, {own:ms} of it alone][ on {on:text}]."


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"was": "run", "took": 2_000_000}, "It ran for 2 ms."),
        (
            {"was": "run", "took": 2_000_000, "own": 0, "on": "cpu"},
            "It ran for 2 ms, 0 ms of it alone on cpu.",
        ),
        ({"was": "run", "took": None}, None),
        ({"was": "run"}, None),
        ({"was": "skipped", "took": 2_000_000}, None),
        ({"took": 2_000_000}, None),
    ],
)
def test_a_sentence_is_said_if_its_facts_are_known_and_a_clause_if_its_own_are(
    facts, said
):
    assert fill(TEMPLATE, facts, FORMS) == said


def test_a_clause_is_said_if_its_condition_holds():
    template = "It ran[{how=late}, but late][{how=twice}, and again]."

    assert fill(template, {"how": "twice"}, FORMS) == "It ran, and again."


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"how": "a", "by": "x"}, "So: one, again: one it was x."),
        ({"how": "b", "by": "x"}, "So: two, again: two it was x."),
        ({"how": "c"}, "So: , again: "),
        ({}, "So: , again: "),
    ],
)
def test_of_clauses_for_values_of_one_fact_those_that_hold_are_said(facts, said):
    template = (
        "So: [{how=a}one][{how=b}two][{how=b}], again: [{how=a}one ][{how=b}two ]"
        "[it was {by:text}.]"
    )

    assert fill(template, facts, FORMS) == said


def test_braces_inside_a_fact_are_no_placeholders():
    facts = {"error": "{own:ms} [of {was=x}]", "own": 5}

    assert fill("It failed: {error:text}", facts, FORMS) == (
        "It failed: {own:ms} [of {was=x}]"
    )


def test_the_forms_of_a_template_are_those_of_its_places():
    assert forms_in(TEMPLATE) == {"ms", "text"}
