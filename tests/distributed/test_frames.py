import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradviz.distributed.transport import frames
from gradviz.distributed.transport.frames import Ask, Bye, FrameError
from tests.campaigns import IS_FULL

ARRAYS = [
    np.arange(6, dtype="<i2").reshape(2, 3).T,
    np.array(2.5),
    np.zeros((0, 3), ">f8"),
    np.array([True, False]),
    np.array(["a", "\u00e9"]),
    np.array([1 + 2j]),
    np.array(["2020-01-01"], "M8[D]"),
]


def written(frame, arrays=(), number=0):
    return b"".join(frames.pieces(number, frames.encode(frame, arrays)))


def read(data, number=0):
    stream = io.BytesIO(data)

    def fill(view):
        if stream.readinto(view) < len(view):
            raise EOFError

    return frames.read_frame(fill, number)


def with_header(text, body=b""):
    return frames.PREFIX.pack(frames.MAGIC, len(text), 0, len(body)) + text + body


def test_arrays_of_every_dtype_and_layout_come_as_they_went():
    frame, found = read(written(Ask(3, {"a": [1, None]}), ARRAYS))
    assert frame == Ask(3, {"a": [1, None]})
    for before, after in zip(ARRAYS, found, strict=True):
        assert (after.dtype, after.shape) == (before.dtype, before.shape)
        assert after.tolist() == before.tolist()
        assert after.flags.writeable


@pytest.mark.parametrize(
    "array",
    [
        np.array([object()]),
        np.zeros(1, "i4,f8"),
        np.zeros(1, "V8"),
        np.lib.stride_tricks.as_strided(np.zeros(1), (2**30,), (0,)),
    ],
)
def test_an_array_that_cannot_be_sent_is_refused_by_the_encoder(array):
    with pytest.raises(FrameError, match="cannot be sent"):
        frames.encode(Ask(0, {}), [array])


def test_more_arrays_than_a_message_may_have_are_refused_before_it_is_sent():
    many = [np.zeros(0)] * (frames.MAX_ARRAYS + 1)
    with pytest.raises(FrameError, match="65,537 arrays cannot be sent at once"):
        frames.encode(Ask(0, {}), many)


@pytest.mark.parametrize("meta", [{"a": object()}, {"a": "x" * 2**24}, {"a": "\ud800"}])
def test_meta_that_cannot_be_sent_is_refused(meta):
    with pytest.raises(FrameError, match="cannot be sent"):
        frames.encode(Ask(0, meta))


MANY = b'{"frame":{"type":"Bye","reason":""},"arrays":[%s]}' % b",".join(
    [b'["|u1",[0]]'] * (frames.MAX_ARRAYS + 1)
)
BYE = b'{"frame":{"type":"Bye","reason":""},"arrays":[[%s]]}'


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\x80\x04\x95" + bytes(40), "begins with"),
        (written(Bye(""), number=4), "message 4 came where number 0 was due"),
        (frames.PREFIX.pack(frames.MAGIC, 2**25, 0, 0), "at most"),
        (frames.PREFIX.pack(frames.MAGIC, 2, 0, 2**60), "at most"),
        (with_header(b"{}"), "is none"),
        (with_header(b"[" * 10**6), "is none"),
        (with_header(b"\xff" * 8), "is none"),
        (with_header(b'{"frame":{"type":"Bye","reason":"","more":1}}'), "is none"),
        (with_header(BYE % b'"|O",[1]', bytes(8)), "dtype '|O' cannot be sent"),
        (with_header(BYE % b'"(3,)<f8",[1]', bytes(24)), "cannot be sent"),
        (with_header(BYE % b'"<f3",[1]', bytes(3)), "cannot be sent"),
        (with_header(BYE % b'"<f8",[-1]', bytes(8)), "cannot have the shape"),
        (with_header(BYE % b'"<f8",[2]', bytes(8)), "need 16 bytes, and it has 8"),
        (with_header(BYE % b'"<f8",[1000000000,9000000000]'), "need"),
        (with_header(BYE % b'"<f8",[0,9223372036854775807,9]'), "cannot be made"),
        (with_header(BYE % b'"|b1",[1]', b"\x02"), "others than 0 and 1"),
        (with_header(MANY), "65,537 arrays cannot be sent at once"),
    ],
)
def test_bytes_that_are_no_frame_are_refused_with_a_reason(data, words):
    with pytest.raises(FrameError) as caught:
        read(data)
    assert words in str(caught.value).replace("\n", " ")


def test_a_frame_that_is_cut_anywhere_is_the_end_of_its_connection():
    data = written(Ask(1, {"a": 1}), [np.zeros(2)])
    for length in range(len(data)):
        with pytest.raises(EOFError):
            read(data[:length])


def check_damaged(changes):
    data = bytearray(written(Ask(1, {"a": [1, "b"]}), ARRAYS))
    for place, value in changes:
        data[place % len(data)] = value
    try:
        frame, _ = read(bytes(data))
    except (FrameError, EOFError):
        return
    assert isinstance(frame, frames.AnyFrame)


CHANGES = st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), max_size=6)


@given(CHANGES)
def test_a_damaged_frame_is_refused_or_is_another_frame(changes):
    check_damaged(changes)


@pytest.mark.stress
@settings(max_examples=20_000 if IS_FULL else 5_000)
@given(CHANGES)
def test_a_damaged_frame_is_refused_or_is_another_frame_many_times(changes):
    check_damaged(changes)


def test_texts_of_errors_are_made_fit_to_be_sent():
    assert frames.sendable("a\ud800") == "a\\ud800"
    assert len(frames.sendable("\u00e9" * 2**20).encode()) <= frames.MAX_TEXT_BYTES


def test_an_error_fits_into_a_frame_however_its_texts_are_written():
    text = frames.sendable("\x01" * 2**20)  # six bytes each in JSON
    header, _ = frames.encode(frames.Failure(1, text, text, text))
    assert len(header) > 2 * 2**20
