"""The tests in `source/`, and a check that `static/` is built from it."""

import base64
import json
import subprocess
from pathlib import Path

import pytest

import gradviz as gv
from gradviz import nn
from gradviz.render.page.document import build_page, pack_page

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "gradviz" / "render" / "page"

pytestmark = pytest.mark.stress


def test_the_committed_page_is_the_one_that_the_source_builds(
    esbuild, tmp_path
) -> None:
    script = json.loads((ROOT / "package.json").read_text())["scripts"]["build"]
    options = [one for one in script.split()[1:] if not one.startswith("--outfile")]

    subprocess.run(
        [*esbuild, *options, f"--outfile={tmp_path}/page.js"], cwd=ROOT, check=True
    )

    for name in ("page.js", "page.css"):
        built, committed = tmp_path / name, PAGE / "static" / name
        assert built.read_text() == committed.read_text(), f"{name}: run 'make page'"


def test_the_types_of_the_source_hold(esbuild) -> None:
    subprocess.run(["npm", "run", "--silent", "types"], cwd=ROOT, check=True)


def test_the_tests_of_the_source_pass(tested, tmp_path) -> None:
    told = tmp_path / "page.json"
    told.write_text(json.dumps(packed_by_python()))

    tested(PAGE=str(told))


def packed_by_python():
    """A page's data, and each of its columns."""
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    with gv.record() as recording:
        model(gv.ones(2, 3)).sum().backward()
    page = build_page(recording.trace, recording.trace.tasks)
    tables = {
        name: table
        for name, table in zip(page._fields, page, strict=True)
        if name not in {"header", "texts", "drawings"}
    }
    tables |= page.drawings._asdict()
    columns = {
        f"{name}.{field}": getattr(table, field).tolist()
        for name, table in tables.items()
        for field in table._fields
    }
    return {"data": base64.b64encode(pack_page(page)).decode(), "columns": columns}
