import sys

import pytest


@pytest.fixture
def desktop(tmp_path, monkeypatch):
    """A desktop whose viewer writes down what it is asked to show."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("DISPLAY", ":0")
    folder = tmp_path / "desktop"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))

    def install(body: str) -> None:
        viewer = folder / "xdg-open"
        viewer.write_text(f"#!/bin/sh\n{body}\n")
        viewer.chmod(0o755)

    install(f'echo "$1" > {folder}/shown')
    install.shown = folder / "shown"
    return install


@pytest.mark.parametrize("picture", ["graph", "timeline"])
def test_a_picture_is_opened_with_the_viewer_of_the_desktop(
    picture, desktop, trace_path, call, tmp_path
) -> None:
    result = call("render", picture, "-q", "-o", "x.svg", "--open", trace_path)

    assert (result.exit_code, result.output) == (0, "")
    assert desktop.shown.read_text() == f"{tmp_path / 'x.svg'}\n"


def test_a_viewer_that_fails_is_told_with_the_place_of_the_file(
    desktop, trace_path, call, tmp_path
) -> None:
    desktop("exit 4")

    result = call("render", "graph", "-q", "-o", "x.svg", "--open", trace_path)

    assert result.exit_code == 0
    assert f"exit code 4: {tmp_path / 'x.svg'} is there" in result.stderr


@pytest.mark.parametrize("missing", ["DISPLAY", "PATH"])
def test_without_a_viewer_it_is_said_where_the_file_lies(
    missing, desktop, trace_path, call, tmp_path, monkeypatch
) -> None:
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setenv(missing, "")

    result = call("render", "graph", "-q", "-o", "x.svg", "--open", trace_path)

    assert result.exit_code == 0
    assert f"no viewer here: open {tmp_path / 'x.svg'} yourself" in result.stderr


def test_output_to_stdout_cannot_be_opened(desktop, trace_path, call) -> None:
    result = call("render", "graph", "-o", "-", "--open", trace_path)

    assert (result.exit_code, result.stdout) == (2, "")
    assert "--open needs a file" in result.stderr
