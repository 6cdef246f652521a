import numpy as np
import pytest

from gradviz.render.layout.layers import Skeleton
from gradviz.render.layout.routing import PORT_GAP, PORT_PART, routes


def ports(leads_to, wide=200.0):
    """Return where edges leave a box at 0 for boxes at these places."""
    edges = [(0, 1 + number) for number in range(len(leads_to))]
    skeleton = Skeleton([(wide, 30.0)] + [(10.0, 30.0)] * len(leads_to), edges)
    x = np.array([0.0, *leads_to])
    ways, _ = routes(skeleton, x, np.array([0.0, 100.0]), np.full(2, 30.0), 0.0)
    return [way[0][0] for way in ways]


def test_edges_that_can_lead_straight_down_do():
    assert ports([-50, 0, 40]) == [-50, 0, 40]


def test_an_edge_alone_starts_in_the_middle_unless_it_can_lead_straight_down():
    assert ports([30]) == [30]
    assert ports([500]) == [0]


def test_edges_to_one_place_are_spread_evenly_around_it():
    assert ports([10, 10, 10]) == [10 - PORT_GAP, 10, 10 + PORT_GAP]


@pytest.mark.parametrize("leads_to", [[500] * 4, [-500] * 4, [-900, -800, 800, 900]])
def test_edges_that_lead_far_away_still_start_at_their_box(leads_to):
    found = ports(leads_to)

    assert all(abs(port) <= PORT_PART * 100 + 1e-6 for port in found)
    assert np.diff(found).min() > 20


def test_edges_start_in_the_order_of_where_they_lead():
    rng = np.random.default_rng(0)
    for _ in range(50):
        leads_to = rng.uniform(-300, 300, 6)
        found = np.array(ports(list(leads_to)))[np.argsort(leads_to)]
        assert np.diff(found).min() > 15


def test_a_way_has_no_stop_twice_and_none_within_a_line():
    skeleton = Skeleton([(50.0, 30.0)] * 3, [(0, 1), (1, 2), (0, 2)])
    x = np.array([0.0, 0.0, 0.0, 60.0])

    (straight, _, bent), _ = routes(
        skeleton,
        x,
        np.array([0.0, 100.0, 200.0]),
        np.array([30.0, 60.0, 30.0]),
        100.0,
    )

    assert (straight[0], straight[-1]) == (straight[0], (straight[0][0], 85.0))
    assert len(straight) == 4
    stops = bent[::3]
    assert stops[1:-1] == ((60.0, 70.0), (60.0, 130.0))
