from gradviz.trace.events import KINDS, own_columns
from gradviz.trace.identities import IDENTITIES, MOMENTS, PLACES, QUANTITIES


def test_of_every_column_of_numbers_it_is_said_what_they_stand_for():
    """Whoever adds a column says so, for merging traces depends on it."""
    numbers = {
        one.name
        for kind in KINDS.values()
        for one in own_columns(kind)
        if one.type is int
    }

    assert numbers <= IDENTITIES.keys() | MOMENTS | QUANTITIES
    assert numbers >= QUANTITIES
    assert not QUANTITIES & IDENTITIES.keys()


def test_every_column_of_texts_that_names_a_stream_is_known():
    texts = {
        one.name
        for kind in KINDS.values()
        for one in own_columns(kind)
        if one.type is str
    }

    assert texts >= PLACES
    assert {name for name in texts if "stream" in name} <= PLACES
