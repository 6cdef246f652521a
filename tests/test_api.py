import ast
import inspect
import subprocess
import sys

import pytest

import gradviz as gv
from gradviz import api


def test_every_public_name_is_there():
    for name in api.__all__:
        assert getattr(gv, name) is getattr(api, name)
        assert name in dir(gv)


def test_an_unknown_name_is_an_error():
    with pytest.raises(AttributeError, match="has no attribute 'tensr'"):
        gv.tensr  # noqa: B018 - asking is the test


def test_packages_are_attributes():
    assert gv.autograd.grad is not None
    assert gv.engine.Engine is not None


@pytest.mark.parametrize("name", ["actor_hooks", "cli", "ids", "ops", "whole_file"])
def test_a_module_that_is_not_public_is_no_attribute_until_it_is_imported(
    name, monkeypatch
):
    monkeypatch.delattr(gv, name, raising=False)

    with pytest.raises(AttributeError, match=f"has no attribute '{name}'"):
        getattr(gv, name)


def test_importing_a_module_that_is_not_public_loads_no_api():
    program = (
        "import sys\n"
        "from gradviz import modes\n"
        "sys.exit(modes is not sys.modules['gradviz.modes'] or 'gradviz.api' in "
        "sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", program], timeout=120, check=False)

    assert done.returncode == 0


def test_importing_gradviz_loads_no_numpy():
    program = "import sys, gradviz; sys.exit('numpy' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", program], timeout=120, check=False)

    assert done.returncode == 0


def test_a_backward_that_nobody_records_loads_no_recorder_and_no_layers():
    program = (
        "import sys, gradviz as gv\n"
        "(gv.ones(3, requires_grad=True) * 2).sum().backward()\n"
        "print(*sys.modules)"
    )

    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )

    modules = done.stdout.split()
    rooms = {".".join(name.split(".")[:2]) for name in modules}
    unused = {"analysis", "capture", "diagnostics", "drawing", "nn", "optim", "pytorch"}
    unused |= {"render", "stream_check"}
    assert "gradviz.engine.engine" in modules
    assert rooms.isdisjoint(f"gradviz.{name}" for name in unused)
    assert {"msgspec", "gradviz.trace.recording"}.isdisjoint(modules)


def test_names_that_are_loaded_late_are_what_their_modules_have():
    from gradviz.capture.session import record

    assert gv.record is api.record is record
    assert {"record", "draw", "load_trace"} <= {*api.__all__} & {*dir(gv)}
    with pytest.raises(AttributeError, match="has no attribute 'recordings'"):
        _ = api.recordings


def test_type_checkers_and_programs_find_late_names_in_the_same_modules():
    tree = ast.parse(inspect.getsource(api))
    (block,) = (one for one in tree.body if isinstance(one, ast.If))

    shown = {one.names[0].asname: one.module for one in block.body}
    assert shown == api._LATE


def test_the_docstring_tells_the_truth():
    import doctest

    failed, attempted = doctest.testmod(gv)

    assert attempted > 0
    assert failed == 0
