"""Pages read back, as `source/data.ts` reads them, and what runs its tests."""

import gzip
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest


def read(data: bytes) -> tuple[dict[str, Any], dict[str, list[int]]]:
    plain = gzip.decompress(data)
    begin = 4 + int.from_bytes(plain[:4], "little")
    told = json.loads(plain[4:begin])
    columns = {}
    for name, (stored, is_delta, length, offset) in told["columns"].items():
        numbers = np.frombuffer(plain, f"<{stored}", length, begin + offset)
        summed = np.cumsum(numbers, dtype=np.int64) if is_delta else numbers
        columns[name] = summed.astype(np.int64).tolist()
    return told["header"], columns


@pytest.fixture
def unpacked():
    return read


ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def esbuild(request) -> list[str]:
    """The command that builds; skips where it cannot be had.

    Only the campaigns install it: who runs the tests waits for no network.
    """
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("there is no node here, or no npm")
    if not (ROOT / "node_modules" / "esbuild").is_dir():
        if request.node.get_closest_marker("stress") is None:
            pytest.skip("node has no esbuild here: 'npm ci' installs it")
        install = ("npm", "ci", "--silent", "--no-audit", "--no-fund")
        if subprocess.run(install, cwd=ROOT, check=False).returncode:
            pytest.skip("npm cannot install what package-lock.json names")
    return [str(ROOT / "node_modules" / ".bin" / "esbuild")]


@pytest.fixture
def tested(esbuild, tmp_path):
    """Runs the tests of the source, those of one module or all, and they pass."""

    def run(module: str = "*", **environment: str) -> None:
        sources = sorted(map(str, Path(__file__).parent.glob(f"{module}.test.ts")))
        built = tmp_path / "built"
        subprocess.run(
            [
                *(*esbuild, *sources, "--bundle", "--platform=node", "--format=esm"),
                *("--out-extension:.js=.mjs", "--log-level=warning"),
                f"--outdir={built}",
            ],
            check=True,
        )
        ran = subprocess.run(
            ["node", "--test", *sorted(map(str, built.glob("*.mjs")))],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout

    return run
