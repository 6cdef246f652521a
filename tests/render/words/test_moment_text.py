import pytest

from gradviz.analysis.moments.node_stages import STAGES, NodeAt
from gradviz.render.words.moment_text import idle_text, stage_text


def node(stage, remaining=0):
    return NodeAt(
        task=0, node=1, stage=stage, since_ns=5, thread=1, remaining=remaining
    )


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_is_said(stage):
    assert stage_text(node(stage))


def test_a_node_waits_for_so_many_more_or_has_all_it_waits_for():
    assert stage_text(node("waiting", 1_200)) == "waits for 1,200 more"
    assert stage_text(node("waiting")) == "has all its gradients"


def test_a_thread_that_runs_nothing_sleeps_on_a_queue_or_is_between_nodes():
    assert idle_text("0 caller 0") == "sleeps on queue 0 caller 0"
    assert idle_text(None) == "between nodes"
