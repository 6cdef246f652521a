"""Films as GIF and MP4: what ffmpeg is given, and what is said without it."""

import sys
from types import ModuleType

import pytest

from gradviz.errors import MissingToolError, UserError
from gradviz.render import conversion
from gradviz.render.film import movie as movies
from gradviz.render.film.film import Film
from gradviz.render.film.movie import check_playable, find_ffmpeg, movie

#: Keeps how it is called and what it is given, and writes a file of its own.
FFMPEG = """\
#!/bin/sh
echo "$@" >"$0.called"
cat >"$0.given"
for output; do :; done
printf "a film" >"$output"
"""

FAILING = """\
#!/bin/sh
echo "some detail" >&2
echo "no encoder for that" >&2
exit 3
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Puts a program on the path as the only one, called ffmpeg."""

    def put(text):
        path = tmp_path / "ffmpeg"
        path.write_text(text)
        path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        return path

    return put


def two_frames() -> Film:
    circles = [f'<circle cx="9" cy="9" r="{radius}"/>' for radius in (3, 7)]
    return Film(
        title="Circles",
        width=40,
        height=20,
        below=(),
        tracks=([circles[0], circles[1], circles[0], circles[0]],),
        above=(),
        seconds=0.25,
        notes=(),
    )


@pytest.mark.parametrize("format_", ["gif", "mp4"])
def test_ffmpeg_is_given_each_frame_in_order(format_, install):
    pytest.importorskip("typst")
    program = install(FFMPEG)

    assert movie(two_frames(), format_) == b"a film"

    given = (program.parent / "ffmpeg.given").read_bytes()
    begin = b"\x89PNG"
    small, large, *rest = [begin + one for one in given.split(begin)[1:]]
    assert rest == [small, small]
    assert small != large
    scale = {"gif": 1, "mp4": 2}[format_]
    assert conversion.png_size(small) == (40 * scale, 20 * scale)
    called = (program.parent / "ffmpeg.called").read_text().split()
    assert called[called.index("-framerate") + 1] == "4"
    assert called[-1].endswith(f"film.{format_}")


def test_the_error_message_of_ffmpeg_is_reported(install):
    pytest.importorskip("typst")
    install(FAILING)

    with pytest.raises(UserError, match="exit code 3: no encoder for that; an svg"):
        movie(two_frames(), "mp4")


def test_a_program_that_cannot_be_started_is_told(install):
    pytest.importorskip("typst")
    install("#!/there/is/no/such/shell\n")

    with pytest.raises(UserError, match="ffmpeg cannot be started"):
        movie(two_frames(), "gif")


@pytest.mark.parametrize("missing", ["typst", "ffmpeg"])
def test_without_a_tool_it_is_said_what_to_install(missing, monkeypatch):
    monkeypatch.setattr(conversion, "is_available", lambda: missing != "typst")
    here = None if missing == "ffmpeg" else "/bin/ffmpeg"
    monkeypatch.setattr(movies, "find_ffmpeg", lambda: here)

    check_playable("svg")
    with pytest.raises(MissingToolError, match=r"pip install 'gradviz\[film\]'"):
        check_playable("mp4")


def test_the_ffmpeg_of_imageio_is_taken_where_there_is_no_other(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    brought = ModuleType("imageio_ffmpeg")
    brought.__spec__ = __import__("importlib").machinery.ModuleSpec("x", None)
    brought.get_ffmpeg_exe = lambda: "/brought/ffmpeg"
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", brought)
    assert find_ffmpeg() == "/brought/ffmpeg"

    def none():
        raise RuntimeError("No ffmpeg exe could be found")

    brought.get_ffmpeg_exe = none
    assert find_ffmpeg() is None
