import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from gradviz.render.layout.blocks import straight_blocks
from gradviz.render.layout.layer_order import ordered
from gradviz.render.layout.layers import Skeleton

SIZE = (100.0, 30.0)


@st.composite
def skeletons(draw):
    num_boxes = draw(st.integers(1, 20))
    box = st.integers(0, num_boxes - 1)
    edges = draw(st.lists(st.tuples(box, box), max_size=50))
    return Skeleton([SIZE] * num_boxes, edges)


@given(skeletons(), st.booleans())
@settings(max_examples=60, deadline=None)
def test_everything_is_in_one_block_which_has_one_item_a_layer(skeleton, main_first):
    layers = ordered(skeleton, main_first=main_first)

    blocks = straight_blocks(skeleton, layers)

    assert sorted(itertools.chain(*blocks)) == list(range(len(skeleton.ranks)))
    for block in blocks:
        for upper, lower in itertools.pairwise(block):
            assert lower in skeleton.below[upper]
            assert skeleton.ranks[lower] == skeleton.ranks[upper] + 1


@given(skeletons())
@settings(max_examples=60, deadline=None)
def test_blocks_never_cross(skeleton):
    layers = ordered(skeleton)
    block_of = {
        item: number
        for number, block in enumerate(straight_blocks(skeleton, layers))
        for item in block
    }

    orders = [[block_of[item] for item in layer] for layer in layers]

    for one, other in itertools.combinations(orders, 2):
        shared = set(one) & set(other)
        assert [at for at in one if at in shared] == [
            at for at in other if at in shared
        ]


def test_the_longest_way_down_is_the_first_block():
    skeleton = Skeleton([SIZE] * 6, [(0, 1), (1, 2), (2, 3), (0, 4), (4, 3), (1, 5)])

    blocks = straight_blocks(skeleton, ordered(skeleton))

    assert blocks[0] == [0, 1, 2, 3]
