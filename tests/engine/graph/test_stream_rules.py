"""Stream waits: every case, and a naive model of what the rules promise."""

import itertools

import pytest

from gradviz.backends.device import Device
from gradviz.backends.stream import Stream, stream_at
from gradviz.engine.graph.stream_rules import (
    Addition,
    Arrival,
    addition,
    arrival,
    consumption,
    endings,
)

HERE, THERE = Device("noted", 0), Device("noted", 1)
#: Two streams where the gradient is, and two elsewhere.
A, B = stream_at(HERE, 1), stream_at(HERE, 2)
Y, Z = stream_at(THERE, 1), stream_at(THERE, 2)
#: The current stream of the gradient's device.
NOW = stream_at(HERE, 0)
#: A device of another kind.
OTHER = stream_at(Device("other", 0), 1)


@pytest.mark.parametrize(
    ("producer", "consumer", "expected"),
    [
        # Case A: the consumer is where the gradient is.
        (A, A, Arrival(A, A, records=False)),
        (A, B, Arrival(A, B, records=True)),
        (Y, B, Arrival(Y, B, records=True)),
        # Case B: only the producer is.
        (A, Y, Arrival(A, A, records=True)),
        # Case C: neither is.
        (Y, Z, Arrival(Y, NOW, records=True)),
        (Y, Y, Arrival(Y, NOW, records=True)),
        # Without a stream of its own a node works on the current one.
        (None, NOW, Arrival(NOW, NOW, records=False)),
        (None, B, Arrival(NOW, B, records=True)),
        (None, Y, Arrival(NOW, NOW, records=True)),
        (None, None, Arrival(NOW, NOW, records=True)),
        (A, None, Arrival(A, NOW, records=True)),
        (Y, None, Arrival(Y, NOW, records=True)),
        # Nor does a stream count that cannot be waited for.
        (OTHER, B, Arrival(NOW, B, records=True)),
        (A, OTHER, Arrival(A, NOW, records=True)),
        (OTHER, OTHER, Arrival(NOW, NOW, records=True)),
    ],
)
def test_a_gradient_arrives_at_a_free_place(producer, consumer, expected):
    assert arrival(HERE, producer, consumer, NOW) == expected


@pytest.mark.parametrize(
    ("earlier", "accumulation", "new", "consumer", "expected"),
    [
        # Case A: sums are made where they are used.
        (A, A, A, A, Addition(A, False, False, records=False)),
        (B, A, A, A, Addition(A, False, True, records=False)),
        (A, A, B, A, Addition(A, True, False, records=False)),
        (B, A, B, A, Addition(A, True, True, records=False)),
        (Y, A, Z, A, Addition(A, True, True, records=False)),
        # Case B: by the first producer.
        (A, A, A, Y, Addition(A, False, False, records=True)),
        (A, A, B, Y, Addition(A, True, False, records=True)),
        (A, A, Y, Y, Addition(A, True, False, records=True)),
        # Case C: by neither.
        (Y, NOW, Z, Z, Addition(NOW, True, True, records=True)),
        (NOW, NOW, Z, Z, Addition(NOW, True, False, records=True)),
        (NOW, NOW, NOW, Z, Addition(NOW, False, False, records=True)),
        # The consumer has no stream.
        (NOW, NOW, A, None, Addition(NOW, True, False, records=True)),
    ],
)
def test_a_gradient_is_added_to_another(earlier, accumulation, new, consumer, expected):
    assert addition(earlier, accumulation, new, consumer) == expected


@pytest.mark.parametrize(
    ("ready", "consumer", "expected"),
    [
        (A, A, A),
        (A, B, B),
        (A, Y, Y),
        (A, None, NOW),
        (A, OTHER, NOW),
    ],
)
def test_a_node_uses_a_gradient_on_its_stream(ready, consumer, expected):
    assert consumption(ready, consumer, NOW) == expected


class TestEndings:
    def test_the_callers_stream_waits_for_each_other_one_of_its_device(self):
        """S5."""
        leaves = [(A, HERE), (B, HERE), (Z, THERE)]

        assert endings(leaves, {HERE: NOW, THERE: Y}) == ((A, NOW), (B, NOW), (Z, Y))

    def test_it_does_not_wait_for_itself(self):
        assert endings([(A, HERE)], {HERE: A}) == ()

    def test_it_waits_once(self):
        assert endings([(A, HERE), (A, HERE)], {HERE: NOW}) == ((A, NOW),)

    def test_a_device_where_the_caller_has_no_stream_is_left_out(self):
        """C8."""
        assert endings([(A, HERE), (Z, THERE)], {HERE: NOW}) == ((A, NOW),)
        assert endings([(A, HERE)], {HERE: None}) == ()

    def test_a_leaf_on_another_device_is_waited_for_on_that_device(self):
        assert endings([(A, HERE), (A, THERE)], {HERE: A, THERE: Y}) == ((A, Y),)

    def test_streams_of_different_kinds_do_not_wait_for_each_other(self):
        """C9."""
        assert endings([(OTHER, HERE)], {HERE: NOW}) == ()


class Model:
    """Predecessors of each stream's next work, if only a plan's steps are done."""

    def __init__(self) -> None:
        self.past: dict[Stream, frozenset[int]] = {}
        self.number = 0

    def work(self, stream: Stream) -> int:
        self.number += 1
        self.past[stream] = self.past_of(stream) | {self.number}
        return self.number

    def past_of(self, stream: Stream) -> frozenset[int]:
        return self.past.get(stream, frozenset())

    def wait(self, stream: Stream, event: frozenset[int] | None) -> None:
        assert event is not None, "nothing was recorded"
        self.past[stream] = self.past_of(stream) | event


STREAMS = (A, B, Y, Z)


@pytest.mark.parametrize("num_gradients", [1, 2, 3])
@pytest.mark.parametrize("consumer", [None, *STREAMS])
def test_the_rules_order_all_that_must_be_in_order(num_gradients, consumer):
    """Each sum comes after both gradients, and the consumer after the last one."""
    makers = [
        (None, NOW),
        (None, B),
        *((one, now) for one in STREAMS for now in (NOW, B)),
    ]
    for producers in itertools.product(makers, repeat=num_gradients):
        for current_of_consumer in (NOW, A):
            check(producers, consumer, current_of_consumer)


def check(
    producers: tuple[tuple[Stream | None, Stream], ...],
    consumer: Stream | None,
    current_of_consumer: Stream,
) -> None:
    model = Model()
    place: tuple[int, Stream, frozenset[int] | None, Stream] | None = None
    for producer, current in producers:
        work = model.work(producer or current)
        ready, accumulation, records = arrival(HERE, producer, consumer, current)
        assert accumulation.device is HERE
        event = model.past_of(ready) if records else None
        if place is not None:
            earlier_work, earlier, earlier_event, accumulation = place
            plan = addition(earlier, accumulation, ready, consumer)
            if plan.waits_for_new:
                model.wait(plan.stream, event)
            if plan.waits_for_earlier:
                model.wait(plan.stream, earlier_event)
            assert {work, earlier_work} <= model.past_of(plan.stream)
            ready = accumulation = plan.stream
            work = model.work(plan.stream)
            event = model.past_of(plan.stream) if plan.records else None
        place = work, ready, event, accumulation
        model.work(ready)  # whatever comes later in that stream is of no interest
    assert place is not None
    work, ready, event, _ = place
    stream = consumption(ready, consumer, current_of_consumer)
    if stream != ready:
        model.wait(stream, event)
    assert work in model.past_of(stream)
