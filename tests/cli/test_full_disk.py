"""Commands that write files, where no file takes more than a few bytes."""

import contextlib
import importlib.util
import resource
from collections.abc import Iterator

import pytest

from tests.cli.conftest import record_backwards

WRITERS = [
    *(f"export {{trace}} -t {kind}" for kind in ("perfetto", "chrome", "speedscope")),
    *(f"export {{trace}} -t {kind}" for kind in ("jsonl", "sqlite", "csv", "parquet")),
    *(f"render {kind} {{trace}}" for kind in ("timeline", "queues", "memory")),
    "render graph {trace} --engine own",
    "render report {trace}",
    "replay {trace}",
    "merge {trace} {other}",
]
SUFFIXES = {"export": "out", "render": "svg", "replay": "svg", "merge": "gvt"}


@contextlib.contextmanager
def full_disk() -> Iterator[None]:
    """Files take ten bytes; Python ignores the signal that comes besides the error."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("has_earlier", [False, True])
@pytest.mark.parametrize("command", WRITERS)
def test_it_is_one_line_and_the_earlier_file_is_kept(
    command, has_earlier, trace_path, call, tmp_path
):
    if "parquet" in command and importlib.util.find_spec("pyarrow") is None:
        pytest.skip("needs pyarrow")
    other = record_backwards(tmp_path / "other.gvt", [1])
    suffix = "html" if "report" in command else SUFFIXES[command.split()[0]]
    output = tmp_path / f"x.{suffix}"
    if has_earlier:
        output.write_text("earlier")
    before = sorted(tmp_path.iterdir())
    words = command.format(trace=trace_path, other=other).split()

    with full_disk():
        done = call(*words, "-f", "-o", output)

    assert done.exit_code == 1
    assert (done.stdout, len(done.stderr.splitlines())) == ("", 1)
    assert done.stderr.startswith("gradviz: cannot ")
    assert sorted(tmp_path.iterdir()) == before
    assert not has_earlier or output.read_text() == "earlier"
