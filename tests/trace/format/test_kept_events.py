import pytest

from gradviz.errors import UserError
from gradviz.trace.events import KINDS, kind_name
from gradviz.trace.format.kept_events import (
    ALWAYS_KEPT,
    keeps_all_of_streams,
    layouts_of,
    left_out_kinds,
    scope_of,
)
from gradviz.trace.format.row_layouts import LAYOUTS
from gradviz.trace.format.scope import Scope, matches, schedule

NAMES = {kind_name(kind) for kind in KINDS.values()}


def kept(*patterns):
    return NAMES - set(left_out_kinds(patterns))


def test_a_named_kind_is_kept_with_the_ends_of_passes():
    assert kept("node_started") == {"node_started"} | ALWAYS_KEPT


def test_a_pattern_stands_for_all_kinds_that_fit_it():
    assert kept("node_*", "hook_called") == ALWAYS_KEPT | {"hook_called"} | {
        name for name in NAMES if name.startswith("node_")
    }


def test_a_kind_can_be_taken_away_from_all_or_from_those_before():
    assert kept("!tensor_saved") == NAMES - {"tensor_saved"}
    assert kept("node_*", "!node_c*") == kept("node_started", "node_failed") | {
        "node_skipped"
    }


def test_the_ends_of_passes_cannot_be_taken_away():
    assert kept("!*") == ALWAYS_KEPT


def test_a_kind_that_does_not_exist_is_refused_with_those_that_are_near():
    with pytest.raises(UserError, match="'node_startet'; did you mean node_started"):
        left_out_kinds(["node_startet"])


def test_of_a_row_for_several_events_those_parts_are_left_that_are_kept():
    layouts = layouts_of(Scope(left_out=left_out_kinds(["node_*"])))

    assert [part.code for part in layouts["node_taken"].parts] == [30]
    assert layouts["node_taken"].parts[0] == LAYOUTS["node_taken"].parts[1]
    assert [part.code for part in layouts["node_passed_on"].parts] == [31]
    assert layouts_of(Scope()) == LAYOUTS


@pytest.mark.parametrize(
    ("pattern", "name", "module", "expected"),
    [
        ("MulBackward0", "MulBackward0", "", True),
        ("Mul*", "MulBackward0", "", True),
        ("mul*", "MulBackward0", "", False),
        ("Net.encoder", "MulBackward0", "Net.encoder", True),
        ("Net.encoder", "MulBackward0", "Net.encoder.0", True),
        ("encoder", "MulBackward0", "Net.encoder.0", True),
        ("encoder.*", "MulBackward0", "Net.encoder.0", True),
        ("encoder", "MulBackward0", "Net.encoders", False),
        ("encoder", "MulBackward0", "Net.decoder.encoder", False),
        ("*", "MulBackward0", "", True),
    ],
)
def test_a_pattern_is_that_of_a_name_or_of_a_module_and_what_is_in_it(
    pattern, name, module, expected
):
    assert matches(pattern, name, module) is expected


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"stacks": "all"}, "stacks is 'all', expected one of none, leaf, full"),
        ({"schedule": 3}, "expected what gv.schedule"),
        ({"only": [3]}, "only has 3, expected patterns"),
        ({"events": ""}, "events has '', expected patterns"),
    ],
)
def test_invalid_options_are_refused(asked, told):
    with pytest.raises(UserError, match=told):
        scope_of(**asked)


def test_a_scope_lists_the_events_that_were_left_out_in_words():
    assert list(Scope().in_words()) == []
    assert list(scope_of(events="!node_c*").in_words()) == [
        "no events node_created, node_completed"
    ]
    told = list(scope_of(events="hook_called", only=["a", "b"]).in_words())
    assert told[0].startswith("only events task_begun, ")
    assert told[1] == "of nodes only a, b"
    assert list(scope_of(schedule=schedule(active=1)).in_words()) == [
        "only the active steps of wait=0 warmup=0 active=1 repeat=0"
    ]


def test_streams_can_be_judged_if_all_that_orders_them_is_kept():
    assert keeps_all_of_streams(scope_of(events="!node_*", only="encoder"))
    assert not keeps_all_of_streams(scope_of(events="!stream_waited"))
    assert not keeps_all_of_streams(scope_of(schedule=schedule(active=1)))
