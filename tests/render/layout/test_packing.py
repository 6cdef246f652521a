import itertools
import random

from gradviz.render.layout.blocks import straight_blocks
from gradviz.render.layout.layer_order import ordered
from gradviz.render.layout.layers import Skeleton
from gradviz.render.layout.packing import LANE_GAP, NODE_GAP, Packing


def packed(seed, *, is_cut=False, num_boxes=60):
    """A random graph's layers and the packing of its blocks, whole or in pieces."""
    chooser = random.Random(seed)
    edges = [(max(0, box - chooser.randint(1, 9)), box) for box in range(1, num_boxes)]
    edges += [tuple(sorted(chooser.sample(range(num_boxes), 2))) for _ in range(20)]
    sizes = [(chooser.uniform(20, 200), 30.0) for _ in range(num_boxes)]
    skeleton = Skeleton(sizes, edges)
    layers = ordered(skeleton)
    blocks = straight_blocks(skeleton, layers)
    if is_cut:
        blocks = [[item] for block in blocks for item in block]
    return skeleton, layers, Packing(skeleton, layers, blocks)


def assert_apart(skeleton, layers, packing):
    for layer in layers:
        for left, right in itertools.pairwise(layer):
            x, other = (packing.x[packing.block_of[one]] for one in (left, right))
            half = (skeleton.widths[left] + skeleton.widths[right]) / 2
            are_bends = min(left, right) >= skeleton.num_boxes
            assert other - x >= half + (LANE_GAP if are_bends else NODE_GAP) - 1e-6


def test_neighbors_of_a_layer_keep_their_order_and_their_distance():
    for seed in range(20):
        skeleton, layers, packing = packed(seed, is_cut=seed % 2 == 1)
        assert_apart(skeleton, layers, packing)
        packing.move(3)
        assert_apart(skeleton, layers, packing)


def test_moving_makes_no_picture_wider_and_keeps_the_first_block():
    for seed in range(20):
        _, _, packing = packed(seed, is_cut=seed % 2 == 1)
        before, first = packing.width(), packing.x[packing.block_of[0]]
        packing.move(8)
        assert packing.width() <= before + 1e-6
        assert packing.x[packing.block_of[0]] == first


def test_moving_brings_blocks_nearer_to_what_they_are_joined_to():
    def length(skeleton, packing):
        x = packing.x[packing.block_of]
        return sum(
            abs(x[one] - x[other])
            for one, below in enumerate(skeleton.below)
            for other in below
        )

    longer = shorter = 0.0
    for seed in range(20):
        skeleton, _, packing = packed(seed, is_cut=True)
        longer += length(skeleton, packing)
        packing.move(8)
        shorter += length(skeleton, packing)
    assert shorter < 0.8 * longer


def test_two_blocks_that_only_see_each_other_meet_in_the_middle():
    # 1 and 2 hang apart from the first box, one below the other.
    skeleton = Skeleton([(100.0, 30.0)] * 3, [(1, 2)])
    layers = [[0, 1], [2]]
    packing = Packing(skeleton, layers, [[0], [1], [2]])

    packing.move(8)

    assert abs(packing.x[1] - packing.x[2]) < 1.0
