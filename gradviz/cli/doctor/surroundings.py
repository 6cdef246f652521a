"""The surroundings of gradviz: the engine, GPUs, Graphviz, the terminal, the folder.

Packages that are optional are found, not imported; CuPy is where there is a GPU, about
which only it can be asked.
"""

import ctypes
import importlib.machinery
import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import numpy as np

import gradviz
from gradviz import compiled_core
from gradviz.analysis.findings.check import check_trace
from gradviz.capture.session import STANDBY, record
from gradviz.cli.console.trace_argument import newest_trace
from gradviz.cli.doctor.health import Finding, version_of
from gradviz.cli.run.children import FOLLOWED
from gradviz.engine import Edge, Engine, Node
from gradviz.render import conversion
from gradviz.render.graph import graphviz
from gradviz.render.terminal.cells import make_console
from gradviz.render.words.text import count


class _HandOn(Node):
    def apply(self, gradient: object) -> tuple[object]:
        return (gradient,)


def surroundings() -> Iterator[Finding]:
    """All of them, in the order in which people ask for them."""
    yield _compiled()
    yield _blas()
    yield _engine()
    yield from _gpu()
    yield _graphviz()
    yield _typst()
    yield from _terminal()
    yield _folder()
    yield _trace()
    yield _variable()


def _compiled() -> Finding:
    told = (
        f"no: pure Python, {compiled_core.why_pure}"
        if compiled_core.why_pure
        else "yes"
    )
    return Finding("engine", "compiled", "ok", told)


def _blas() -> Finding:
    try:
        blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
        told = f"{blas['name']} {blas.get('version', '')}".strip()
    except (KeyError, TypeError):
        told = "NumPy does not say"
    threads = os.environ.get("OMP_NUM_THREADS") or f"{os.cpu_count()}, one a core"
    return Finding("engine", "blas", "ok", f"{told}, threads: {threads}")


def _engine() -> Finding:
    """Runs a backward pass, and reads its recording back."""
    try:
        with record() as recording:
            Engine().execute([Edge(_HandOn([Edge(None)]))], [np.ones(2)])
        check = check_trace(recording.trace)
        wrong = "" if check.is_fine else "its recording is not sound"
    except Exception as error:  # noqa: BLE001 - whatever it is, that is the finding
        wrong = f"{type(error).__name__}: {error}"
    if wrong:
        advice = "a defect of gradviz or of its installation"
        return Finding("engine", "backward", "failed", wrong, advice)
    return Finding("engine", "backward", "ok", "a pass ran, was recorded and is sound")


def _gpu() -> Iterator[Finding]:
    gpus = _cuda_devices()
    found = f"{count(gpus, 'device')}" if gpus else "none (no NVIDIA driver finds one)"
    yield Finding("gpu", "devices", "ok" if gpus else "absent", found)
    cupy = importlib.util.find_spec("cupy") is not None
    if cupy and gpus:
        usable = gradviz.cuda.is_available()
        told = "gradviz can use the GPU" if usable else "CuPy cannot use the GPU"
        advice = "" if usable else "python -c 'import cupy; cupy.show_config()'"
        yield Finding("gpu", "cuda", "ok" if usable else "absent", told, advice)
    elif gpus:
        install = "pip install 'gradviz[cuda]'"
        yield Finding("gpu", "cuda", "absent", "CuPy is not installed", install)
    else:
        told = "CuPy is installed, but there is no GPU" if cupy else "no GPU to use"
        yield Finding("gpu", "cuda", "absent", told)


def _cuda_devices() -> int:
    """Return the number of GPUs that the driver knows, without CuPy."""
    number = ctypes.c_int(0)
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(number)):
            return 0
    except (OSError, AttributeError):
        return 0
    return number.value


def _graphviz() -> Finding:
    match graphviz.find_graphviz():
        case None:
            told = "none: graphs are laid out by gradviz, which needs none"
            install = "pip install 'gradviz[dot]', or your system's package graphviz"
            return Finding("tools", "graphviz", "absent", told, install)
        case "pygraphviz":
            told = f"that of pygraphviz {version_of('pygraphviz')}: no dot on the PATH"
            return Finding("tools", "graphviz", "ok", told)
        case path:
            return Finding("tools", "graphviz", "ok", f"{path}, on the PATH")


def _typst() -> Finding:
    if conversion.is_available():
        told = "png and pdf files of timelines are made by it"
        return Finding("tools", "typst", "ok", told)
    told = "none: svg files need none, png and pdf files of timelines do"
    install = "pip install 'gradviz[pictures]'"
    return Finding("tools", "typst", "absent", told, install)


def _terminal() -> Iterator[Finding]:
    size = shutil.get_terminal_size()
    is_one = "a terminal" if sys.stdout.isatty() else "no terminal"
    told = f"{is_one}, {size.columns} columns, {size.lines} lines"
    yield Finding("terminal", "stdout", "ok", told)
    colors = make_console().color_system or "none"
    why = " (NO_COLOR is set)" if os.environ.get("NO_COLOR") else ""
    yield Finding("terminal", "colors", "ok", f"{colors}{why}")
    encoding = sys.stdout.encoding
    try:
        "█µ→".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        told = f"{encoding} lacks some: plain ones stand for them"
        advice = "set PYTHONUTF8=1 if the terminal can show them"
        yield Finding("terminal", "encoding", "absent", told, advice)
    else:
        yield Finding("terminal", "encoding", "ok", encoding)


def _folder() -> Finding:
    here = str(Path.cwd())
    try:
        with tempfile.TemporaryFile(dir=here):
            pass
    except OSError as error:
        told = f"{here} cannot be written: {error.strerror}"
        return Finding("folder", "write", "failed", told, "say where with -o FILE")
    return Finding("folder", "write", "ok", f"{here} can be written")


def _trace() -> Finding:
    newest = newest_trace()
    if newest is None:
        record = "gradviz run SCRIPT"
        return Finding("folder", "trace", "absent", "no *.gvt here yet", record)
    about = newest.stat()
    when = datetime.fromtimestamp(about.st_mtime).astimezone()
    told = f"{newest}, {about.st_size:,} bytes, of {when:%Y-%m-%d %H:%M}"
    return Finding("folder", "trace", "ok", told)


def _variable() -> Finding:
    """Name the programs that record themselves if the environment asks them to."""
    wanted = os.environ.get("GRADVIZ_TRACE", "0")
    is_set = wanted not in {"", "0"}
    asks = f"{wanted} records" if is_set else "1 would record"
    if wanted == STANDBY:
        asks = f"{wanted} lets 'gradviz attach' record"
    told = f"GRADVIZ_TRACE={asks} each program that imports gradviz"
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if str(FOLLOWED) in paths:
        told = f"{told}, and each that imports PyTorch"
        return Finding("folder", "variable", "ok", told)
    advice = f"with PYTHONPATH={FOLLOWED} those too that import only PyTorch"
    return Finding("folder", "variable", "ok", told, advice)
