"""What is in `source/`: its tests, and whether `static/` is what it builds."""

import base64
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import gradviz as gv
from gradviz import nn
from gradviz.render.page.document import build_page, pack_page

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "gradviz" / "render" / "page"

pytestmark = pytest.mark.stress


@pytest.fixture(scope="module")
def esbuild() -> list[str]:
    """The command that builds; skips where it cannot be had."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("there is no node here, or no npm")
    if not (ROOT / "node_modules" / "esbuild").is_dir():
        install = ("npm", "ci", "--silent", "--no-audit", "--no-fund")
        if subprocess.run(install, cwd=ROOT, check=False).returncode:
            pytest.skip("npm cannot install what package-lock.json names")
    return [str(ROOT / "node_modules" / ".bin" / "esbuild")]


def test_what_is_committed_is_what_the_source_builds(esbuild, tmp_path) -> None:
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


def test_the_tests_of_the_source_pass(esbuild, tmp_path) -> None:
    told = tmp_path / "page.json"
    told.write_text(json.dumps(packed_by_python()))
    sources = sorted(map(str, Path(__file__).parent.glob("*.test.ts")))
    subprocess.run(
        [
            *(*esbuild, *sources, "--bundle", "--platform=node", "--format=esm"),
            *("--out-extension:.js=.mjs", "--log-level=warning"),
            f"--outdir={tmp_path}",
        ],
        check=True,
    )

    run = subprocess.run(
        ["node", "--test", *sorted(map(str, tmp_path.glob("*.mjs")))],
        env={**os.environ, "PAGE": str(told)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == 0, run.stdout


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
    for number, drawing in enumerate(page.drawings):
        for name in drawing._fields[1:]:
            tables[f"drawing{number}.{name}"] = getattr(drawing, name)
    columns = {
        f"{name}.{field}": getattr(table, field).tolist()
        for name, table in tables.items()
        for field in table._fields
    }
    return {"data": base64.b64encode(pack_page(page)).decode(), "columns": columns}
