import pytest

from gradviz.analysis.findings.advice import Advice
from gradviz.analysis.memory.finding import CostlyFinding
from gradviz.render.terminal.advice import finding_text, print_advice


def finding(rule, **changes):
    fields = {
        "rule": rule,
        "certainty": "certain",
        "location": "/home/me/train.py:9",
        "task": 4,
        "node": 7,
        "name": "MulBackward0",
        "count": 46,
    }
    return CostlyFinding(**(fields | changes))


@pytest.mark.parametrize(
    ("one", "told"),
    [
        (finding("deep_nesting", detail="2"), "nested 46 deep; at 60 an"),
        (finding("branches_in_turn"), "MulBackward0 (7) and what ran beside it"),
        (finding("one_leaf", module="Net.0"), "(7) of Net.0 adds up 46 gradients"),
        (finding("slow_hooks", detail="tensor_pre"), "tensor pre hooks, called 46"),
        (finding("needless_wait", detail="a for b"), "a for b need not wait"),
        (
            finding("needless_wait", detail="a for b", certainty="likely"),
            "the wait of a for b had no effect",
        ),
        (
            finding("accumulate_stream_mismatch", detail="a for b"),
            "accumulates on a what was made on b, and waits for it. It is alive since",
        ),
        (
            finding("accumulate_stream_mismatch", detail="a for b", count=0),
            "It was made before, under another stream",
        ),
        (
            finding("host_wait", detail="cuda:0/7"),
            "within MulBackward0 (7) the host waited for cuda:0/7, 46 times",
        ),
        (finding("graph_never_run"), "46 nodes of a graph that no pass ran"),
        (finding("graph_held_over", times=13), "over 13 passes that did not use it"),
        (finding("graph_grows"), "at last 46 nodes"),
        (finding("needless_retain_graph"), "Leave out retain_graph"),
        (finding("needless_create_graph"), "Leave out create_graph"),
    ],
)
def test_each_rule_has_a_sentence_with_its_line(one, told):
    text = finding_text(one)

    assert text.startswith("train.py:9: ")
    assert told in text


def test_costs_are_told_with_the_passes_that_they_are_of():
    one = finding("slow_hooks", cost_ns=1_500, cost_bytes=2048, times=3)

    assert finding_text(one).endswith("(up to 1.5 µs, up to 2 KiB, in 3 passes).")


def test_an_uncertain_finding_says_so():
    one = finding("branches_in_turn", certainty="likely")

    assert finding_text(one).endswith("This is likely, not certain.")


def test_no_advice_is_said_and_so_is_what_was_not_looked_for(shown):
    advice = Advice(findings=(), num_omitted=0, not_looked_for=("graph_never_run",))

    told = " ".join(" ".join(shown(lambda c: print_advice(advice, c))).split())

    assert "Advice: nothing found" in told
    assert "because the trace lacks events: graph never run." in told


def test_names_of_a_trace_are_only_text():
    text = finding_text(
        finding("one_leaf", name="\x1b[31mBad", location="\x1b]0;y\x07")
    )

    assert "\x1b" not in text
