import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradviz.trace.format.frames import (
    MAGIC,
    MAX_UNPACKED,
    Budget,
    DamageError,
    Frame,
    FrameType,
    Gap,
    Stamp,
    encode_frame,
    pack,
    scan,
    unpack,
)

FIRST = encode_frame(FrameType.HEADER, b"first")
SECOND = encode_frame(FrameType.EVENTS, b"second")


def payloads(data: bytes) -> list[bytes]:
    return [bytes(piece.payload) for piece in scan(data) if isinstance(piece, Frame)]


def gaps(data: bytes) -> list[Gap]:
    return [piece for piece in scan(data) if isinstance(piece, Gap)]


@given(st.lists(st.binary(max_size=100), max_size=5))
def test_frames_return_their_contents_in_order(contents):
    data = b"".join(encode_frame(FrameType.EVENTS, one) for one in contents)

    assert payloads(data) == contents
    assert not gaps(data)


def test_no_utf8_text_contains_the_magic():
    with pytest.raises(UnicodeDecodeError):
        MAGIC.decode("utf-8")


def test_a_cut_frame_is_a_tail():
    for cut in range(1, len(SECOND)):
        data = FIRST + SECOND[:cut]

        assert payloads(data) == [b"first"], f"cut at {cut}"
        assert gaps(data) == [Gap(len(FIRST), cut, is_tail=True)], f"cut at {cut}"


def test_a_flipped_bit_costs_its_frame_and_no_other():
    for bit in range(8 * len(FIRST)):
        damaged = bytearray(FIRST + SECOND)
        damaged[bit // 8] ^= 1 << bit % 8

        assert payloads(bytes(damaged)) == [b"second"], f"bit {bit}"
        assert gaps(bytes(damaged)) == [Gap(0, len(FIRST), is_tail=False)], f"bit {bit}"


def test_foreign_bytes_between_frames_are_a_gap():
    data = FIRST + b"who knows" + SECOND

    assert payloads(data) == [b"first", b"second"]
    assert gaps(data) == [Gap(len(FIRST), 9, is_tail=False)]


def test_a_frame_is_found_wherever_a_false_start_stands_before_it():
    """The frame begins inside of what the false start claims, at any distance."""
    false = MAGIC + bytes([200, 0, 0, 0]) + bytes(17)
    for distance in range(1, 30):
        data = FIRST + false[:distance] + SECOND + bytes(250)

        assert payloads(data) == [b"first", b"second"], f"distance {distance}"


def test_an_empty_file_has_no_pieces():
    assert list(scan(b"")) == []


@given(st.binary(max_size=200), st.integers(0, 30))
def test_every_byte_is_in_exactly_one_piece(noise, place):
    data = FIRST + noise[:place] + MAGIC + noise[place:] + SECOND
    sizes = [
        piece.size if isinstance(piece, Gap) else len(piece.payload) + 17
        for piece in scan(data)
    ]

    assert sum(sizes) == len(data)


def test_a_file_of_false_starts_is_given_up_on():
    claim = MAGIC + (1 << 24).to_bytes(4, "little") + bytes(5)
    data = claim * 40_000 + bytes(1 << 24)

    assert [type(piece) for piece in scan(data)] == [Gap]


@given(st.binary(max_size=1000))
def test_packed_bytes_unpack_unchanged(raw):
    assert unpack(memoryview(pack(raw)), Budget(0)) == (raw, None)


@given(st.binary(max_size=1000), st.tuples(*[st.integers(0, 2**32 - 1)] * 2))
def test_a_stamp_comes_back_with_what_was_packed(raw, numbers):
    stamp = Stamp(*numbers)

    assert unpack(memoryview(pack(raw, stamp)), Budget(0)) == (raw, stamp)


def bomb(size: int, claim: int) -> memoryview:
    return memoryview(claim.to_bytes(4, "little") + zlib.compress(bytes(size)))


@pytest.mark.parametrize(
    "payload",
    [
        memoryview(b""),
        memoryview(b"\0\0"),
        memoryview(b"\5\0\0\0no zlib"),
        memoryview(pack(b"some text")[:-1]),
        bomb(1000, claim=999),
        bomb(1000, claim=1001),
        bomb(MAX_UNPACKED + 1, claim=MAX_UNPACKED + 1),
        bomb(32 << 20, claim=100),
    ],
    ids=[
        "empty",
        "too short",
        "not packed",
        "cut",
        "claims less",
        "claims more",
        "claims too much",
        "bomb",
    ],
)
def test_a_payload_that_does_not_unpack_to_what_it_claims_is_refused(payload):
    with pytest.raises(DamageError):
        unpack(payload, Budget(0))


def test_many_small_bombs_exhaust_the_budget():
    payload = bomb(MAX_UNPACKED, claim=MAX_UNPACKED)
    budget = Budget(len(payload))
    for _ in range(4):
        unpack(payload, budget)

    with pytest.raises(DamageError, match="far more"):
        unpack(payload, budget)


@pytest.mark.parametrize(
    ("take", "small", "per_byte"),
    [
        (Budget.unpack, 64 << 20, 16),
        (lambda budget, size: budget.decode(0, size), 64 << 20, 48),
        (lambda budget, num_rows: budget.decode(num_rows, 0), 1 << 20, 1 / 2),
        (Budget.define, 1 << 19, 1 / 4),
        (Budget.keep, 64 << 20, 13),
    ],
)
@pytest.mark.parametrize("file_size", [0, 1_000])
def test_a_file_costs_its_reader_so_much_and_no_more(take, small, per_byte, file_size):
    """See docs/trace-format.md; all that it takes counts together."""
    budget, limit = Budget(file_size), small + int(per_byte * file_size)
    take(budget, limit - 5)
    take(budget, 5)

    with pytest.raises(DamageError, match="than a recorder"):
        take(budget, 1)


def test_the_longest_frame_is_what_may_be_packed_and_a_little_more():
    """Incompressible data takes more room packed than plain."""
    longest, longer = MAX_UNPACKED + 60_000, MAX_UNPACKED + 70_000

    assert len(payloads(encode_frame(FrameType.EVENTS, bytes(longest)))) == 1
    assert payloads(encode_frame(FrameType.EVENTS, bytes(longer))) == []
