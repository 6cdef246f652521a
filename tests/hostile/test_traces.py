"""Hostile traces and their benign twins show texts of the same extent."""

from gradviz.render.words.text import clean, width
from gradviz.trace.reading.reader import load_trace


def test_each_text_is_as_wide_as_that_of_its_twin(traces):
    hostile, benign = (
        [width(clean(text), 10) for text in load_trace(traces[name]).strings]
        for name in ("hostile", "benign")
    )

    assert hostile == benign
