"""Films as GIF and MP4 files: frames by Typst, put together by ffmpeg.

It is the ``ffmpeg`` on the PATH, or else the one that imageio-ffmpeg brings along.
"""

import importlib
import importlib.util
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Literal, TypeAlias

from gradviz.errors import MissingToolError, RenderTimeoutError, UserError
from gradviz.render import conversion
from gradviz.render.film.film import Film

MovieFormat: TypeAlias = Literal["gif", "mp4"]
FilmFormat: TypeAlias = Literal["svg", "gif", "mp4"]

FILM_FORMATS: Final[tuple[FilmFormat, ...]] = ("svg", "mp4", "gif")

#: An MP4 is no wider, and no more than twice as wide as its film.
MP4_WIDTH: Final = 1_920
#: Players want so many frames a second at least: each of the film's is repeated.
MP4_SPEED: Final = 12
#: Number of frames made by one run of Typst.
BATCH: Final = 25
#: ffmpeg may take so long after it has got the last frame.
TIMEOUT_S: Final = 120.0

#: A palette of the film's own, without dithering: 256 colors are enough for it.
_GIF: Final = (
    *("-filter_complex", "split[a][b];[a]palettegen[p];[b][p]paletteuse=dither=none"),
    *("-loop", "0", "-f", "gif"),
)
#: An even number of pixels, which H.264 in its usual form needs, and its index first.
_MP4: Final = (
    *("-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2", "-pix_fmt", "yuv420p"),
    *("-c:v", "libx264", "-preset", "veryfast", "-crf", "20"),
    *("-movflags", "+faststart", "-f", "mp4"),
)


def find_ffmpeg() -> str | None:
    """Return the path of ffmpeg; None if there is none."""
    if found := shutil.which("ffmpeg"):
        return found
    if importlib.util.find_spec("imageio_ffmpeg") is None:
        return None
    try:
        brought: str = importlib.import_module("imageio_ffmpeg").get_ffmpeg_exe()
    except RuntimeError:  # it was installed without a program for this machine
        return None
    return brought


def check_playable(format: FilmFormat) -> None:  # noqa: A002 - what it is called everywhere
    """Refuse a format that cannot be made here, before any work is done for it.

    Raises:
        MissingToolError: It needs Typst and ffmpeg, and one of them is not installed.
    """
    if format == "svg" or (conversion.is_available() and find_ffmpeg()):
        return
    raise MissingToolError(
        f"{format} files of films need typst and ffmpeg: "
        f"pip install 'gradviz[film]', or write an svg, which needs nothing"
    )


def movie(film: Film, format: MovieFormat) -> bytes:  # noqa: A002 - as above
    """Return a film as a GIF, which plays without end, or as an MP4 without sound.

    Raises:
        MissingToolError: Typst or ffmpeg is not installed.
        RenderTimeoutError: ffmpeg took too long.
        UserError: One of them failed; the text says with what.
    """
    check_playable(format)
    ffmpeg = find_ffmpeg()
    assert ffmpeg is not None
    speed = ("-framerate", f"{1 / film.seconds:g}")
    rate = ("-r", f"{max(MP4_SPEED, 1 / film.seconds):g}")
    how = (*_MP4, *rate) if format == "mp4" else _GIF
    scale = min(2.0, MP4_WIDTH / film.width) if format == "mp4" else 1.0
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, f"film.{format}")
        command = (
            *(ffmpeg, "-v", "error", "-f", "image2pipe", *speed, "-c:v", "png"),
            *("-i", "-", *how, str(output)),
        )
        _encode(command, _pngs(film, scale))
        return output.read_bytes()


def _pngs(film: Film, scale: float) -> Iterator[bytes]:
    """The frames; one that stays the same is made once."""
    known: dict[bytes, bytes] = {}
    for first in range(0, film.num_frames, BATCH):
        some = [
            film.frame(at) for at in range(first, min(first + BATCH, film.num_frames))
        ]
        new = [one for one in dict.fromkeys(some) if one not in known]
        if new:
            made = conversion.pngs(new, film.width, film.height, scale)
            known = dict(zip(new, made, strict=True)) | {
                one: known[one] for one in some if one in known
            }
        yield from (known[one] for one in some)


def _encode(command: Sequence[str], frames: Iterator[bytes]) -> None:
    """Run ffmpeg, and give it the frames.

    Raises:
        RenderTimeoutError: It took too long.
        UserError: It cannot be started, or failed.
    """
    with tempfile.TemporaryFile() as said:
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=said, stderr=said
            )
        except OSError as error:
            raise UserError(f"ffmpeg cannot be started: {error}") from error
        with process:
            try:
                assert process.stdin is not None
                for frame in frames:
                    process.stdin.write(frame)
                process.communicate(timeout=TIMEOUT_S)
            except BrokenPipeError:  # it ended early, and says why
                process.wait()
            except subprocess.TimeoutExpired as error:
                process.kill()
                raise RenderTimeoutError(
                    f"ffmpeg took longer than {TIMEOUT_S:g} s and was stopped; "
                    f"--length makes a shorter film, an svg needs no ffmpeg"
                ) from error
            except BaseException:
                process.kill()
                raise
        if process.returncode:
            said.seek(0)
            lines = said.read().decode(errors="replace").strip().splitlines()
            why = f": {lines[-1]}" if lines else ""
            raise UserError(
                f"ffmpeg failed with exit code {process.returncode}{why}; "
                f"an svg needs none"
            )
