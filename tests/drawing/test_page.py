"""Pages of recordings in notebooks: a frame that holds one, apart from all else."""

import html
import re

import pytest

import gradviz as gv
from gradviz.drawing import page as pages
from gradviz.errors import UserError


@pytest.fixture(scope="module")
def recording():
    with gv.record() as recording:
        (gv.ones(3, requires_grad=True) * 2).sum().backward()
    return recording


def framed(shown):
    """The attributes of the frame, and the page in it."""
    (attributes,) = re.findall(r"^<iframe ([^>]*)>[^<>]*</iframe>$", shown)
    found = dict(re.findall(r'([\w-]+)="([^"]*)"', attributes))
    return found, html.unescape(found.pop("srcdoc"))


def test_a_recording_has_a_page_that_a_notebook_shows_in_a_frame(recording, tmp_path):
    page = recording.page(height=500)
    frame, inside = framed(page._repr_html_())

    assert "allow-same-origin" not in frame["sandbox"]
    assert frame["sandbox"].split() == ["allow-scripts", "allow-downloads"]
    assert "height: 500px" in frame["style"]
    assert inside.startswith("<!doctype html>")
    assert "default-src 'none'" in inside
    saved = page.save(tmp_path / "page.html")
    assert saved.read_text() == inside


def test_the_text_in_a_frame_that_jupyter_drops_names_the_page_and_the_reason():
    shown = pages.Page(b"<p>", "a<b>.gvt")._repr_html_()

    assert re.sub("<[^>]*>", "", shown) == (
        "Page of a&lt;b&gt;.gvt: Jupyter shows it if the notebook is trusted"
    )


def test_a_page_too_large_for_a_notebook_is_shown_if_that_is_asked_for(
    recording, monkeypatch
):
    monkeypatch.setattr(pages, "MAX_EMBEDDED", 1_000)

    told = recording.page()
    asked = recording.page(embed=True)

    assert "page(embed=True)" in repr(told)
    assert "iframe" not in told._repr_html_()
    assert framed(asked._repr_html_())


def test_a_title_is_no_markup():
    shown = pages.Page(b"<p>", '"><script>x</script>')._repr_html_()

    frame, inside = framed(shown)
    assert html.unescape(frame["title"]) == '"><script>x</script>'
    assert inside == "<p>"


@pytest.mark.parametrize("height", [0, 199, 4_001])
def test_a_frame_of_another_height_is_refused(height, recording):
    with pytest.raises(UserError, match="200 to 4,000 pixels"):
        recording.page(height=height)


def test_a_pass_that_is_not_there_has_no_page(recording):
    with pytest.raises(UserError):
        recording.page(task=999_999)


def test_a_page_that_cannot_be_written_is_told(recording, tmp_path):
    with pytest.raises(UserError, match="cannot write"):
        recording.page().save(tmp_path / "no" / "page.html")
