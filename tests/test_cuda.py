import subprocess
import sys

import pytest

import gradviz as gv
from gradviz.backends import base
from gradviz.backends.cuda import backend as cuda
from tests.backends import fake_cupy

NO_GPU = "CUDA devices need CuPy|finds no CUDA device"


@pytest.fixture
def without_gpu():
    if gv.cuda.is_available():
        pytest.skip("there is a GPU")


def test_a_program_can_ask_whether_there_is_cuda():
    assert gv.cuda.is_available() is (gv.cuda.device_count() > 0)


@pytest.mark.parametrize(
    "use",
    [
        lambda: gv.tensor(1.0, device="cuda:0"),
        lambda: gv.zeros(1).to("cuda"),
        lambda: gv.zeros(1).cuda(),
        gv.cuda.Stream,
        lambda: gv.cuda.Event().record(),
        gv.cuda.current_device,
        gv.cuda.current_stream,
        gv.cuda.synchronize,
        lambda: gv.cuda.set_device(0),
        gv.cuda.get_device_name,
        lambda: gv.cuda.memory_allocated(1),
    ],
)
@pytest.mark.usefixtures("without_gpu")
def test_without_cuda_an_error_says_what_is_missing(use):
    with pytest.raises(RuntimeError, match=NO_GPU):
        use()


@pytest.mark.usefixtures("without_gpu")
def test_without_cuda_programs_may_ask_all_the_same():
    assert not gv.cuda.is_initialized()
    assert gv.cuda.memory_allocated() == gv.cuda.max_memory_allocated() == 0
    gv.cuda.empty_cache()
    gv.cuda.manual_seed_all(3)
    drawn = gv.rand(3).tolist()
    gv.cuda.manual_seed(3)
    assert gv.rand(3).tolist() == drawn
    with gv.cuda.stream(None):
        pass


def test_without_cupy_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)  # as if it were not installed

    with pytest.raises(
        RuntimeError, match=r"need CuPy, .*: pip install 'gradviz\[cuda"
    ):
        cuda.make_backend()


def test_without_a_gpu_the_driver_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy.make(0))

    with pytest.raises(
        RuntimeError, match=r"finds no CUDA device \(cudaErrorInsufficientDriver\)"
    ):
        cuda.make_backend()


def test_an_error_about_cuda_harms_no_other_device(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.setattr(base, "_by_type", {"sim": base.backend_of(gv.device("sim:0"))})

    assert not gv.cuda.is_available()
    assert gv.accelerator.current_accelerator().type == "sim"
    assert gv.sim.is_available()


def test_cupy_is_not_imported_before_a_program_asks():
    program = (
        "import sys, gradviz as gv; gv.zeros(2, device='sim:0').sum().item();"
        "sys.exit('cupy' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", program], timeout=120, check=False)

    assert done.returncode == 0
