import pytest

from gradviz.analysis.moments.explanation import (
    Ahead,
    Explanation,
    GivenGradient,
    Mention,
    OfLine,
)
from gradviz.analysis.nodes.rpc_edges import RpcEdge
from gradviz.analysis.tables.hook_calls import HookCall
from gradviz.render.terminal.explanation import print_explanation


def ahead(node, name, why, *, index):
    return Ahead(node=node, name=name, task=4, why=why, sequence_nr=0, index=index)


def make(**changes):
    fields = {
        "task": 4,
        "node": 9,
        "index": 5,
        "name": "MulBackward0",
        "device": "cpu",
        "location": "/home/u/main.py:7",
        "called_at": "",
        "module": "Net.layers.0",
        "parameters": (),
        "sequence_nr": 3,
        "status": "completed",
        "error": "",
        "absence": None,
        "is_root": False,
        "arrivals": (
            GivenGradient(Mention(5, "SinBackward0", 2), 1_000, 1),
            GivenGradient(Mention(6, "CosBackward0", 4), 3_500, 0),
        ),
        "num_arrivals": 2,
        "queue": "device 0",
        "pushed_ns": 3_600,
        "popped_ns": 9_600,
        "thread": 2,
        "thread_name": "gradviz-sim:0",
        "busy_ns": 2_000,
        "slept_ns": 0,
        "ahead": (
            ahead(7, "Exp", "made later", index=0),
            ahead(8, "Log", "made later", index=1),
            ahead(-1, "wake-up", "wake-up", index=-1),
        ),
        "num_ahead": 5,
        "started_ns": 9_700,
        "ended_ns": 10_700,
        "thread_time_ns": 1_000,
        "processor_wait_ns": 0,
        "num_alike": 1,
        "usual_ns": 1_000,
        "usual_thread_time_ns": 1_000,
        "calls": (),
        "num_calls": 0,
        "calls_ns": 0,
        "stream_waits": (Mention(6, "CosBackward0", 4),),
        "let_start": (Mention(1, "AccumulateGrad", 6), Mention(2, "TBackward0")),
        "num_let_start": 2,
    }
    return Explanation(**(fields | changes))


def lines(shown, width=200, **changes):
    explanation = make(**changes)
    return shown(lambda console: print_explanation(explanation, console), width=width)


def test_a_node_of_a_line_that_made_several_is_told_by_its_number(shown):
    (head, *_) = lines(shown, of_line=OfLine(4, 1_200))
    assert "made at main.py:7 (4 of 1,200 there), in Net.layers.0" in head


def test_a_node_is_told_in_the_order_in_which_things_happened_to_it(shown):
    assert "\n".join(lines(shown)) == (
        "#5 MulBackward0, node 9 of pass 4, on cpu, made at main.py:7, "
        "in Net.layers.0\n"
        "  It received 2 gradients; the last one came from #4 CosBackward0 (6), "
        "3.5 µs after the pass began, 2.5 µs after that of #2 SinBackward0 (5).\n"
        "  It was pushed to the queue of device 0 and waited there for 6 µs; thread 2 "
        "ran other nodes for 2 µs.\n"
        "  Popped before it: #0 Exp (7) and #1 Log (8) (made later by the forward); "
        "wake-up (a wake-up goes first); and 2 more.\n"
        "  Its stream had to wait for the work of #4 CosBackward0 (6).\n"
        "  It ran on thread 2 gradviz-sim:0 for 1 µs.\n"
        "  It sent the last missing gradient to #6 AccumulateGrad (1) and "
        "TBackward0 (2)."
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"is_root": True}, "The pass began with it."),
        ({"called_at": "/home/u/train.py:8"}, "node 9 of pass 4 (train.py:8), on cpu"),
        (
            {"calls": (5,), "num_calls": 1, "calls_ns": 700},
            "Meanwhile it called pass 5, which took 700 ns of that.",
        ),
        (
            {"calls": (5, 6), "num_calls": 9, "calls_ns": 700},
            "Meanwhile it called passes 5, 6 and 7 more, which took 700 ns of that.",
        ),
        (
            {"parameters": ("Net.a.weight", "Net.b.weight")},
            "node 9 of pass 4, of Net.a.weight = Net.b.weight, on cpu",
        ),
        (
            {"ended_ns": 9_009_700, "thread_time_ns": 2_000_000},
            "It ran on thread 2 gradviz-sim:0 for 9 ms, 2 ms of it on a processor.",
        ),
        (
            {"ended_ns": 9_009_700, "thread_time_ns": None},
            "It ran on thread 2 gradviz-sim:0 for 9 ms.",
        ),
        (
            {"processor_wait_ns": 7_000_000},
            "For 7 ms of that time its thread was not running, and nothing recorded",
        ),
        (
            {"num_alike": 20, "usual_ns": 200_000, "usual_thread_time_ns": 150_000},
            "The median of 20 passes of this shape is 200 µs, 150 µs of it on a",
        ),
        ({"slept_ns": 500, "busy_ns": 0}, "thread 2 woke up 500 ns later."),
        ({"popped_ns": None}, "after 3.6 µs and never left it."),
        ({"status": "captured"}, "Its gradient was captured on thread 2"),
        ({"status": "unfinished", "ended_ns": None}, "its end is missing"),
        (
            {"status": "failed", "error": "ValueError: no"},
            "It failed on thread 2 gradviz-sim:0 after 1 µs: ValueError: no",
        ),
        (
            {"status": None, "absence": "failed before", "error": "ValueError: no"},
            "It did not run: its pass failed before (ValueError: no).",
        ),
        ({"status": None, "absence": "skipped"}, "its pass had failed by then"),
        (
            {"status": None, "absence": "unfinished"},
            "when the trace ended, inside its pass",
        ),
        ({"status": None, "absence": "not reached"}, "no gradient reached it"),
        (
            {"arrivals": (GivenGradient(Mention(5, "Sin"), 90, 2),), "num_arrivals": 1},
            "from Sin (5), 90 ns after the pass began; it waits for 2 more.",
        ),
    ],
)
def test_an_explanation_mentions_each_special_circumstance(shown, changes, words):
    assert any(words in line for line in lines(shown, **changes))


def test_a_node_that_a_message_started_names_the_sender_and_not_the_pass_start(shown):
    message = RpcEdge(
        end="send", worker=1, peer=2, message=9, node=-1, name="", received_ns=5
    )
    told = lines(shown, is_root=True, crossing=message)

    assert told[1].startswith("  Its gradient came from worker 2")
    assert not any("The pass began with it" in line for line in told)


@pytest.mark.parametrize("width", [80, 120])
def test_long_sentences_go_on_in_the_next_line(shown, width):
    told = lines(shown, width)

    assert max(map(len, told)) <= width
    assert all(line.startswith("  ") for line in told[1:])
    assert not any(line.endswith(" ") for line in told)


def test_text_from_a_program_cannot_control_the_terminal(shown):
    told = lines(shown, name="a\x1b[31m", status="failed", error="b\x1b]0;x\x07")

    assert "\x1b" not in "".join(told)


def hook(**changes):
    fields = {
        "kind": "tensor_pre",
        "index": 0,
        "function": "scale",
        "defined_at": "/home/u/main.py:3",
        "registered_at": "/home/u/main.py:9",
        "target": "",
        "task": 4,
        "node": 9,
        "thread": 2,
        "began_ns": 9_800,
        "took_ns": 1_500,
    }
    return HookCall(**(fields | changes))


def test_hooks_are_told_with_their_lines_and_times(shown):
    unknown = {"registered_at": "", "took_ns": None, "inferred": True}
    hooks = (
        hook(),
        hook(kind="module", target="Net.layers.0", **unknown),
        hook(function="", defined_at="", **unknown | {"together_ns": 2_000}),
    )
    said = lines(shown, width=1_000, hooks=hooks, num_hooks=4)
    assert (
        "Its hooks, in the order in which they ran: scale (main.py:3, registered at "
        "main.py:9), tensor hook, 1.5 µs; scale (main.py:3), backward hook of "
        "Net.layers.0, time unknown; a function without a known name, tensor hook, "
        "together with others 2 µs (inferred); and 1 more."
    ) in "\n".join(said)
