import atexit
import sys
from types import ModuleType

import pytest

from gradviz.errors import UserError
from gradviz.pytorch.watching import listeners
from gradviz.trace.reading.reader import load_trace

pytest.importorskip("IPython")

PASS = "import gradviz as gv\n(gv.ones(2, requires_grad=True) * 2).sum().backward()"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a cell in a shell that has loaded the extension; what it shows."""
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output
    from traitlets.config import Config

    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.chdir(tmp_path)
    # A shell takes the place of the program, and wants to be told of its end.
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    # From its begin without a history: the databases of one would stay open.
    quiet = Config({"HistoryManager": {"enabled": False}})
    shell = InteractiveShell.instance(config=quiet)
    atexit.unregister(shell.atexit_operations)
    shell.run_line_magic("load_ext", "gradviz")

    def cell(text: str):
        with capture_output() as shown:
            shell.run_cell(text)
        return shown

    yield cell
    shell.atexit_operations()
    InteractiveShell.clear_instance()


def test_a_cell_is_recorded_and_its_order_shown(run, tmp_path) -> None:
    shown = run(f"%%gradviz\n{PASS}\nprint('ran')")

    lines = shown.stdout.splitlines()
    assert lines[0] == "ran"
    assert lines[1].endswith(": 3 nodes in the order they ran")
    assert shown.stderr == ""
    assert not [*tmp_path.glob("*.gvt")]


def test_names_of_a_cell_are_there_in_the_next(run) -> None:
    run(f"%%gradviz\n{PASS}\nx = 5")

    assert run("print(x)").stdout == "5\n"


def test_the_line_says_what_to_show(run) -> None:
    assert "MulBackward0" in run(f"%%gradviz explain Mul\n{PASS}").stdout
    assert run(f"%%gradviz check\n{PASS}").stdout.startswith("nothing is wrong")


def test_a_picture_appears_below_the_cell(run, tmp_path) -> None:
    shown = run(f"%%gradviz render graph --contract\n{PASS}")

    (picture,) = shown.outputs
    assert picture.data["image/svg+xml"].startswith("<svg")
    assert "if the notebook is trusted" in picture.data["text/plain"]
    assert not [*tmp_path.glob("*.svg")]


def test_the_page_of_the_cell_appears_below_it(run) -> None:
    shown = run(f"%%gradviz page --height 300\n{PASS}")

    (page,) = shown.outputs
    assert page.data["text/html"].startswith("<iframe sandbox=")
    assert "height: 300px" in page.data["text/html"]
    assert shown.stderr == ""


def test_a_film_of_the_cell_appears_below_it(run) -> None:
    shown = run(f"%%gradviz render replay\n{PASS}")

    (film,) = shown.outputs
    assert "<animate " in film.data["image/svg+xml"]


def test_a_recording_is_kept_where_the_line_says(run, tmp_path) -> None:
    run(f"%%gradviz -o kept.gvt show summary\n{PASS}")
    again = run(f"%%gradviz -o kept.gvt show summary\n{PASS}")

    assert len(load_trace(tmp_path / "kept.gvt").tasks) == 1
    assert "kept.gvt' exists" in again.stderr


@pytest.mark.parametrize(
    "line", ["show ordr", "-x", "show 'order", "render", "page --height 9"]
)
def test_a_line_that_is_wrong_is_told_in_one_line_and_the_shell_goes_on(line, run):
    shown = run(f"%%gradviz {line}\n{PASS}")

    assert shown.stderr.startswith(("gradviz: ", "Usage: "))
    assert "Traceback" not in shown.stdout + shown.stderr
    assert run("print('here')").stdout == "here\n"


def test_a_cell_that_raises_shows_what_it_did_until_then(run) -> None:
    shown = run(f"%%gradviz\n{PASS}\nraise KeyError('gone')")

    assert "KeyError" in shown.stdout + shown.stderr
    assert "in the order they ran" in shown.stdout


def test_passes_of_pytorch_are_recorded_also_if_the_cell_imports_it(run) -> None:
    pytest.importorskip("torch")
    imports = "import torch\nx = torch.ones(3, requires_grad=True)"
    shown = run(f"%%gradviz\n{imports}\n(x * 2).sum().backward()")

    assert "MulBackward0" in shown.stdout
    assert shown.stderr == ""


def test_why_passes_of_pytorch_are_not_there_is_told(run, monkeypatch) -> None:
    def cannot(*_: object, **__: object) -> None:
        raise UserError("it is too old")

    monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))
    monkeypatch.setattr(listeners, "start", cannot)

    told = run("%%gradviz\nx = 1").stderr
    assert "no pass of PyTorch's own engine is recorded: it is too old" in told


def test_a_cell_without_a_pass_is_told_so(run) -> None:
    assert "ran no backward pass" in run("%%gradviz\nx = 1").stderr
