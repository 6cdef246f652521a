from gradviz.render.layout.layer_order import ordered
from gradviz.render.layout.layers import Skeleton


def skeleton(num_boxes, *edges):
    return Skeleton([(100.0, 30.0)] * num_boxes, edges)


def test_a_box_that_nothing_points_to_stands_right_above_what_it_leads_to():
    found = skeleton(5, (0, 1), (1, 2), (2, 3), (4, 3))

    assert found.ranks[4] == 2


def test_the_first_box_stays_at_the_top():
    found = skeleton(5, (0, 4), (1, 2), (2, 3), (3, 4))

    assert found.ranks[0] == 0


def test_the_losses_of_time_steps_stand_beside_their_steps():
    # 0, 1, 2 add up losses; 3, 4, 5 are the losses of states 6, 8, 10.
    sums = [(0, 3), (0, 1), (1, 4), (1, 2), (2, 5)]
    states = [(6, 7), (7, 8), (8, 9), (9, 10)]
    found = skeleton(11, *sums, (3, 6), (4, 8), (5, 10), *states)

    assert [found.ranks[loss] for loss in (3, 4, 5)] == [1, 3, 5]
    assert [found.ranks[state] for state in (6, 8, 10)] == [2, 4, 6]


def test_boxes_that_hang_from_one_box_move_down_with_it():
    # 1 moves down to 4, and 5 with it.
    found = skeleton(6, (0, 1), (0, 2), (2, 3), (3, 4), (1, 4), (1, 5))

    assert found.ranks[1] == found.ranks[3]
    assert found.ranks[5] == found.ranks[1] + 1


def test_the_main_way_leads_through_most_boxes():
    found = skeleton(5, (0, 4), (0, 1), (1, 2), (2, 4), (0, 3), (3, 4))

    assert found.main == [0, 1, 2, 4]


def test_a_line_goes_on_where_the_deeper_way_comes_from():
    # A chain of states 0 to 3, and a head that joins at 2.
    found = skeleton(5, (0, 1), (1, 2), (2, 3), (4, 2))

    assert [found.next[box] for box in range(5)] == [1, 2, 3, -1, -1]


def test_long_edges_start_left_of_the_main_way_and_what_hangs_from_it_right():
    found = skeleton(5, (0, 1), (1, 2), (2, 3), (0, 3), (1, 4))

    layers = ordered(found)

    bend = found.bends[3][1]
    assert layers[2] == [bend, 2, 4]


def test_the_main_way_can_be_the_leftmost_of_each_layer():
    found = skeleton(5, (0, 1), (1, 2), (2, 3), (0, 3), (1, 4))

    layers = ordered(found, main_first=True)

    assert [layer[0] for layer in layers] == [0, 1, 2, 3]


def test_neighbors_are_swapped_where_that_saves_crossings():
    found = skeleton(6, (0, 1), (0, 2), (0, 3), (1, 5), (2, 4), (3, 4), (1, 5))

    layers = ordered(found)

    place = {item: index for layer in layers for index, item in enumerate(layer)}
    assert (place[4] < place[5]) == (max(place[2], place[3]) < place[1])
