"""The notebook of the docs runs from its first cell to its last."""

import json
import sys

import pytest

from tests.docs.pages import DOCS


@pytest.mark.stress  # a kernel takes seconds to start
def test_the_notebook_of_the_engine_runs_and_shows_pictures(tmp_path, monkeypatch):
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    kernel = tmp_path / "kernels" / "this"
    kernel.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": argv, "display_name": "this", "language": "python"}
    (kernel / "kernel.json").write_text(json.dumps(spec))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    notebook = nbformat.read(DOCS / "engine.ipynb", as_version=4)

    # Any cell that raises raises here.
    nbclient.NotebookClient(
        notebook,
        kernel_name="this",
        timeout=120,
        coalesce_streams=True,  # else a cell may print in several outputs
        resources={"metadata": {"path": str(tmp_path)}},
    ).execute()

    shown = [
        output.data
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if "data" in output
    ]
    films = [one for one in shown if "<animate" in one.get("image/svg+xml", "")]
    assert len(films) == 2
    assert sum("image/svg+xml" in one for one in shown) == 5
    assert "CosBackward0" in notebook.cells[-1].outputs[0].text
