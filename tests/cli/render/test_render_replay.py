"""``gradviz render replay``."""

import re
import xml.etree.ElementTree as ET

import pytest

from gradviz.render.film import movie


def test_a_film_is_made_beside_where_one_stands(trace_path, call, tmp_path):
    result = call("render", "replay", trace_path)

    film = tmp_path / "gradviz-replay-two.svg"
    assert (result.exit_code, result.stdout) == (0, "")
    said = re.search(
        r"filmed gradviz-replay-two.svg: (\d+) events, (.*) s", result.stderr
    )
    assert said is not None
    assert int(said[1]) / 4 + 2 == pytest.approx(float(said[2]), abs=0.1)
    assert ET.parse(film).getroot().tag.endswith("svg")
    assert "<animate " in film.read_text()


def test_a_film_of_some_events_has_the_speed_and_size_that_are_asked_for(
    trace_path, call
):
    words = ("--kind", "task_popped", "--speed", "2", "--size", "800x500")
    result = call("render", "replay", trace_path, *words, "-o", "-")

    assert result.stdout.count("left queue") == 4
    assert 'dur="4s"' in result.stdout  # four events, two seconds of rest
    assert 'width="800" height="500"' in result.stdout


def test_a_film_that_is_not_to_be_long_has_fewer_events_and_says_so(trace_path, call):
    result = call("render", "replay", trace_path, "--length", "4", "-o", "-")

    said = re.search(r"(\d+) of (\d+) events are in the film", result.stderr)
    assert said is not None
    assert f"{said[1]} of {said[2]} events are shown" in result.stdout
    (length,) = {*re.findall(r'dur="([\d.]+)s"', result.stdout)}
    assert float(length) <= 4


@pytest.mark.parametrize("size", ["10x10", "9000x9000", "800", "800x"])
def test_a_size_that_cannot_be_is_a_usage_error(size, trace_path, call):
    result = call("render", "replay", trace_path, "--size", size)

    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1


def test_one_film_shows_one_pass(trace_path, call):
    result = call("render", "replay", trace_path, "--pass", "all")

    assert result.exit_code == 2
    assert "a film shows one backward pass" in result.stderr


def test_a_movie_without_its_tools_is_4_and_says_what_to_install(
    trace_path, call, tmp_path, monkeypatch
):
    monkeypatch.setattr(movie, "find_ffmpeg", lambda: None)

    result = call("render", "replay", trace_path, "-o", "x.mp4")

    assert result.exit_code == 4
    assert len(result.stderr.splitlines()) == 1
    assert "pip install 'gradviz[film]'" in result.stderr
    assert not (tmp_path / "x.mp4").exists()


def test_markup_of_a_program_is_plain_text_in_a_film(failed_path, call):
    result = call("render", "replay", failed_path, "-o", "-")

    ET.fromstring(result.stdout_bytes)
    assert b"<b>" not in result.stdout_bytes


def test_a_trace_without_a_pass_has_no_film(call, tmp_path, record_empty):
    record_empty(tmp_path / "empty.gvt")

    result = call("render", "replay", "empty.gvt")

    assert result.exit_code == 1
    assert "backward" in result.stderr
