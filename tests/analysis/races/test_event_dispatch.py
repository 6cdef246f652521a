import inspect

from gradviz.analysis.races.event_dispatch import HANDLERS
from gradviz.trace.events import KINDS, kind_name


def test_every_event_of_streams_memory_and_threads_feeds_but_those_for_people():
    of_devices = [
        kind for code, kind in KINDS.items() if 45 <= code < 60 or 70 <= code < 80
    ]

    unused = {kind_name(kind) for kind in of_devices if kind not in HANDLERS}
    assert unused == {"leaf_stream_synced", "kernel_ran", "stream_named"}


def test_each_method_can_do_without_the_fields_that_its_event_lacks():
    for tell, fields in HANDLERS.values():
        (_, *parameters) = inspect.signature(tell).parameters.values()
        needed = [one.name for one in parameters if one.default is one.empty]
        assert set(needed) <= set(fields)
        assert [one.name for one in parameters][: len(fields)] == list(fields)
