from gradviz.trace.events import KINDS, kind_name
from gradviz.trace.rules import RULES


def test_every_kind_has_a_rule_and_nothing_else_has():
    assert set(RULES) == set(KINDS.values())


def test_every_thing_that_a_rule_names_is_a_field_of_its_event():
    strange = {
        kind_name(kind): set(rule.things) - set(kind.__struct_fields__)
        for kind, rule in RULES.items()
    }

    assert strange == {kind_name(kind): set() for kind in KINDS.values()}


def test_a_rule_about_a_node_has_a_rule_about_its_task():
    assert all(rule.task for rule in RULES.values() if rule.node)


def test_rules_end_exactly_the_kinds_that_open_something():
    endings = {rule.ends for rule in RULES.values() if rule.ends}

    assert endings == {kind for kind, rule in RULES.items() if rule.opens}


def test_a_kind_without_a_rule_fails_at_import(run_python):
    result = run_python("""
        from gradviz.trace import events

        class NodeParked(events.Event, frozen=True, kw_only=True):
            code = 35

        events.KINDS[35] = NodeParked
        import gradviz.trace.rules
    """)

    assert "TypeError: no rule says when NodeParked may happen" in result.stderr
