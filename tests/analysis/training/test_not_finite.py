import pytest

import gradviz as gv
from gradviz.analysis.findings.check import check_document, check_trace
from gradviz.analysis.moments.explanation import explain
from gradviz.analysis.training.not_finite import not_finite_values
from gradviz.analysis.training.summary import summarize
from gradviz.render.words.not_finite_text import not_finite_text
from gradviz.trace import probe
from gradviz.trace.probe import Checked


@pytest.fixture(scope="module")
def trace():
    """Three steps, in the second of which a gradient is infinite."""
    with gv.record(check_finite=True) as recording:
        for step in range(3):
            recording.step()
            x = gv.tensor([4.0, float(step != 1)], requires_grad=True)
            (x * 3).sqrt().sum().backward()
    return recording.trace


def test_a_value_has_its_step_pass_and_node(trace):
    (one,) = not_finite_values(trace)

    assert (one.what, one.value, one.step) == ("gradient", "infinity", 1)
    assert trace.nodes[one.node].name == one.name == "SqrtBackward0"
    assert one.index == 1
    assert one.location.startswith(__file__)
    assert (one.smallest, one.largest, one.given_infinity) == (1.0, 1.0, False)


def test_it_is_said_in_one_sentence(trace):
    (one,) = not_finite_values(trace)

    text = not_finite_text(one)

    assert text.startswith(
        "step 1: infinity in the gradient of input 0 of SqrtBackward0 #1 of pass "
    )
    assert text.endswith("; its inputs had magnitudes up to 1")


def test_a_trace_with_one_is_not_fine(trace):
    check = check_trace(trace)
    document = check_document(check)

    assert not check.is_fine
    assert document["finite_checked"]
    assert [one["what"] for one in document["not_finite"]] == ["gradient"]
    assert document["not_finite_not_listed"] == 0


def test_its_node_is_explained_with_it_and_others_are_not(trace):
    (one,) = not_finite_values(trace)
    others = {node for node in trace.nodes if node != one.node}

    assert explain(trace, one.task, one.node).not_finite == (one,)
    assert not any(not_finite_values(trace, node=node) for node in others)


def test_the_summary_has_the_first(trace):
    summary = summarize(trace)

    assert summary.num_not_finite == 1
    assert summary.not_finite == not_finite_values(trace)


def test_magnitudes_that_are_no_numbers_are_unknown():
    with gv.record() as recording:
        for text in ("", "much", "2.5"):
            probe.current.not_finite(
                *(-1, -1, Checked.RESULT, 0, True, False, text, text),
                *(-1, "net", "log", "a.py:1"),
            )

    assert [one.largest for one in not_finite_values(recording.trace)] == [
        None,
        None,
        2.5,
    ]


@pytest.mark.parametrize("what", Checked)
def test_each_kind_of_value_has_words(what):
    with gv.record() as recording:
        probe.current.not_finite(-1, -1, what, 1, True, True, "1.0", "9.0", 3, *"mnl")

    (one,) = not_finite_values(recording.trace)

    assert not_finite_text(one).startswith("NaN in ")
    assert "from 1 to 9, and infinities" in not_finite_text(one)
