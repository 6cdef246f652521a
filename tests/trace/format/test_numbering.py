import pytest

from gradviz.trace.format.frames import DamageError, Numbering, Stamp


def taken(*numbers):
    """Return the contents of these frames, and then the missing parts."""
    numbering = Numbering(5)
    said = [numbering.take(Stamp(5, number)) for number in numbers]
    return said, list(numbering.missing())


def test_frames_in_their_order_tell_nothing():
    assert taken(1, 2, 3) == (["", "", ""], [])


def test_a_frame_that_comes_late_is_told():
    assert taken(1, 3, 2, 4) == (["", "", "frame 2 is not in its place", ""], [])


@pytest.mark.parametrize(
    ("numbers", "missing"),
    [
        ((2,), ["frame 1 is missing"]),
        ((1, 3), ["frame 2 is missing"]),
        ((1, 5), ["frames 2 to 4 are missing"]),
        ((2, 4), ["frame 1 is missing", "frame 3 is missing"]),
    ],
)
def test_holes_are_told(numbers, missing):
    assert taken(*numbers)[1] == missing


def test_ten_holes_are_told_one_by_one_and_the_rest_together():
    told = taken(*range(2, 22, 2), 24, 30)[1]

    assert told[9:] == ["frame 19 is missing", "8 more frames are missing"]
    assert len(taken(*range(2, 22, 2))[1]) == 10


@pytest.mark.parametrize("stamp", [None, Stamp(6, 1)])
def test_a_frame_of_another_recording_is_damage(stamp):
    with pytest.raises(DamageError, match="belongs to another recording"):
        Numbering(5).take(stamp)


@pytest.mark.parametrize("number", [0, 1])
def test_a_frame_that_comes_twice_is_damage(number):
    numbering = Numbering(5)
    numbering.take(Stamp(5, 1))

    with pytest.raises(DamageError, match=f"it is frame {number} once more"):
        numbering.take(Stamp(5, number))


def test_frames_of_an_older_trace_have_no_numbers():
    numbering = Numbering(-1)

    assert numbering.take(None) == numbering.take(Stamp(3, 9)) == ""
    assert list(numbering.missing()) == []


def test_a_recording_may_have_drawn_zero():
    numbering = Numbering(0)

    numbering.take(Stamp(0, 2))

    assert list(numbering.missing()) == ["frame 1 is missing"]
