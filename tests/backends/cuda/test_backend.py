"""CUDA's own features, over CuPy's fake; the rest is in `test_accelerators`."""

import gc
import itertools
import weakref

import numpy as np
import pytest

import gradviz as gv
from gradviz.backends import base
from gradviz.backends.cuda.backend import CudaBackend
from gradviz.backends.cuda.cuda_streams import POOL_SIZE
from gradviz.errors import OutOfMemoryError
from tests.backends import fake_cupy
from tests.backends.isolation import backends_as_they_were


@pytest.fixture
def cupy():
    with backends_as_they_were():
        cupy = fake_cupy.make(2)
        base.register(CudaBackend(cupy, cupy.cupyx.errstate))
        yield cupy


@pytest.fixture(params=["fake", pytest.param("gpu", marks=pytest.mark.gpu)])
def either(request):
    """CuPy's fake, or the real one with a GPU."""
    with backends_as_they_were():
        if request.param == "fake":
            cupy = fake_cupy.make()
            base.register(CudaBackend(cupy, cupy.cupyx.errstate))
        elif not gv.cuda.is_available():
            pytest.skip("no CUDA device, or no CuPy")
        yield


def of_kind(recording, *kinds):
    return [event for event in recording.events() if type(event).__name__ in kinds]


# --- streams --------------------------------------------------------------------------


def test_the_current_stream_is_cupys_too(cupy):
    side = gv.cuda.Stream()

    with side:
        inside = cupy.state.current[0]
    outside = cupy.state.current[0]

    assert inside is not cupy.cuda.Stream.null
    assert outside is cupy.cuda.Stream.null


def test_work_leaves_the_current_device_of_cupy_alone(cupy):
    with gv.cuda.Stream(1):
        gv.ones(3, device="cuda:1").exp()

    assert cupy.state.device == 0


def test_a_launch_goes_to_the_stream_of_its_context(cupy):
    """A coroutine has its own, though its thread is the same: CuPy does not know it."""
    side = gv.cuda.Stream()
    x = gv.ones(2, device="cuda")
    with side:
        x * 2
        of_side = cupy.state.current[0]
        cupy.cuda.Stream.null.use()  # as another coroutine would have left it

        x * 2

        assert cupy.state.current[0] is of_side


def test_a_pool_is_used_in_turn(cupy):
    made = [gv.cuda.Stream() for _ in range(2 * POOL_SIZE)]
    high = gv.cuda.Stream(priority=-1)

    assert made[:POOL_SIZE] == made[POOL_SIZE:]
    assert len(set(made)) == POOL_SIZE
    assert high not in made


def test_a_stream_is_idle_once_its_work_is_done(cupy):
    stream = gv.cuda.current_stream()
    cupy.state.is_behind = True
    assert not stream.query()

    cupy.state.is_behind = False
    assert stream.query()


@pytest.mark.parametrize("call", ["record_event", "query", "synchronize", "wait"])
def test_stream_calls_that_launch_nothing_keep_cupys_current_stream(cupy, call):
    gv.ones(1, device="cuda")
    before = cupy.state.current[0]
    side = gv.cuda.Stream()

    if call == "wait":
        side.wait_stream(gv.cuda.current_stream())
    else:
        getattr(side, call)()

    assert cupy.state.current[0] is before


def free_what_a_stream_uses(other):
    x = gv.ones(2, device=other.device)
    x.record_stream(other)


def work_in_a_stream(other):
    with other:
        -gv.ones(2, device=other.device)


def wait_for_a_stream(other):
    gv.cuda.current_stream().wait_stream(other)
    other.synchronize()


def make_a_stream(other):
    gv.cuda.Stream(other.device)


@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize(
    "finaliser",
    [free_what_a_stream_uses, work_in_a_stream, wait_for_a_stream, make_a_stream],
)
def test_a_collection_amid_a_launch_leaves_its_stream_current(cupy, finaliser, index):
    """It strikes at each point in turn at which it can."""
    side, other = gv.cuda.Stream(), gv.cuda.Stream(index)
    with side:
        x = gv.zeros(2, device="cuda")
        of_side = cupy.state.current[0]
        for number in itertools.count():
            countdown = itertools.count(number, -1)

            def collect(countdown=countdown):
                if next(countdown) == 0:
                    finaliser(other)

            cupy.state.collect = collect
            y = x.exp()
            cupy.state.collect = lambda: None

            assert cupy.state.launches[-1] == ("exp", of_side)
            assert y.array.memory.block.stream is of_side
            assert (cupy.state.current[0], cupy.state.device) == (of_side, 0)
            if next(countdown) >= 0:  # there are not as many points
                break
    assert number > 3


def test_a_stream_made_amid_the_making_of_another_is_one_of_its_own(cupy):
    made = []

    def collect():
        cupy.state.collect = lambda: None
        made.append(gv.cuda.Stream())

    cupy.state.collect = collect
    stream = gv.cuda.Stream()

    assert made
    assert stream not in made


# --- copies ---------------------------------------------------------------------------


def test_a_copy_between_devices_waits_for_both_sides(cupy):
    x = gv.ones(3, device="cuda:0")
    source, target = gv.cuda.Stream(0), gv.cuda.Stream(1)

    with source, target:
        y = x.to("cuda:1")
        of_source, of_target = cupy.state.current[0], cupy.state.current[1]

    names = {of_source: "source", of_target: "target"}
    log = [
        (entry[0], names[entry[1]])
        for entry in cupy.log
        if len(entry) > 1 and entry[1] in names
    ]
    assert log == [
        ("record", "target"),
        ("wait", "source"),
        ("copy", "source"),
        ("record", "source"),
        ("wait", "target"),
    ]
    assert y.tolist() == [1.0, 1.0, 1.0]


def test_only_copies_that_must_wait_do(cupy):
    gv.ones(3).to("cuda")
    pinned = gv.ones(3).pin_memory()
    there = pinned.to("cuda", non_blocking=True)
    there.to("cpu", non_blocking=True)
    assert [entry for entry in cupy.log if entry[0] == "synchronize"] == []

    pinned.to("cuda")
    there.cpu()
    assert len([entry for entry in cupy.log if entry[0] == "synchronize"]) == 2


def test_a_copy_that_nobody_waits_for_goes_to_pinned_memory(cupy):
    """To other memory CUDA copies only once the device has come so far."""
    x = gv.ones(3, device="cuda")

    assert x.to("cpu", non_blocking=True).is_pinned()
    assert not x.to("cpu").is_pinned()


def test_pinned_memory_lives_until_the_copy_is_done(cupy):
    pinned = gv.ones(3).pin_memory()
    memory = weakref.ref(pinned.array)
    cupy.state.is_behind = True

    pinned.to("cuda", non_blocking=True)
    del pinned
    gc.collect()
    assert memory() is not None

    cupy.state.is_behind = False
    gv.cuda.empty_cache()
    assert memory() is None


def test_pinned_memory_that_a_copy_writes_to_lives_until_the_copy_is_done(cupy):
    there = gv.ones(3, device="cuda")
    cupy.state.is_behind = True

    back = there.to("cpu", non_blocking=True)
    memory = weakref.ref(back.array)
    del back
    gc.collect()
    assert memory() is not None

    cupy.state.is_behind = False
    gv.cuda.empty_cache()
    assert memory() is None


# --- memory ---------------------------------------------------------------------------


def test_memory_that_a_stream_uses_lives_until_it_is_done(cupy):
    side = gv.cuda.Stream()
    x = gv.ones(1000, device="cuda")
    block = weakref.ref(x.array.memory.block)
    cupy.state.is_behind = True

    x.record_stream(side)
    del x
    assert block() is not None
    gv.cuda.empty_cache()
    assert block() is not None

    cupy.state.is_behind = False
    gv.cuda.empty_cache()
    assert block() is None


def test_a_slow_stream_holds_up_no_memory_of_others(cupy):
    slow, fast = gv.cuda.Stream(), gv.cuda.Stream()
    with slow:
        of_slow = cupy.state.current[0]
    x, y = gv.ones(2, device="cuda"), gv.ones(2, device="cuda")
    blocks = weakref.ref(x.array.memory.block), weakref.ref(y.array.memory.block)
    cupy.state.is_behind = True
    x.record_stream(slow)
    y.record_stream(fast)
    del x, y

    cupy.state.is_behind = False
    cupy.state.slow.add(of_slow)
    gv.cuda.empty_cache()
    assert [block() is None for block in blocks] == [False, True]

    cupy.state.slow.clear()
    gv.cuda.empty_cache()
    assert [block() is None for block in blocks] == [True, True]


@pytest.mark.parametrize(
    "wait",
    [
        lambda side, event: gv.cuda.synchronize(),
        lambda side, event: side.synchronize(),
        lambda side, event: event.synchronize(),
        lambda side, event: gv.ones(1, device="cuda").item(),
    ],
    ids=["device", "stream", "event", "item"],
)
def test_to_wait_lets_memory_go(cupy, wait):
    side = gv.cuda.Stream()
    x = gv.ones(1000, device="cuda")
    block = weakref.ref(x.array.memory.block)
    cupy.state.is_behind = True
    x.record_stream(side)
    event = side.record_event()
    del x
    assert block() is not None

    cupy.state.is_behind = False
    wait(side, event)

    assert block() is None


def test_memory_that_streams_use_is_waited_for_when_there_is_no_other(cupy):
    side, other = gv.cuda.Stream(), gv.cuda.Stream(1)
    x, elsewhere = gv.ones(1000, device="cuda"), gv.ones(10, device="cuda:1")
    kept = weakref.ref(elsewhere.array.memory.block)
    cupy.state.is_behind = True
    x.record_stream(side)
    elsewhere.record_stream(other)
    del x, elsewhere
    cupy.state.memory_left = 100

    y = gv.zeros(900, device="cuda")

    assert y.array.memory.block.size == 3600
    assert len([entry for entry in cupy.log if entry[0] == "synchronize"]) == 1
    assert kept() is not None  # of another device: it would not have helped


def test_memory_of_one_stream_goes_back_at_once(cupy):
    x = gv.ones(1000, device="cuda")
    block = weakref.ref(x.array.memory.block)
    cupy.state.is_behind = True

    del x

    assert block() is None


def test_views_share_memory(cupy):
    x = gv.arange(6.0, device="cuda")
    memory = x.array.memory

    for view in (x[1:], x.view(2, 3), x.view(2, 3).t(), x.detach(), x[None]):
        assert view.array.memory is memory
    assert x[gv.tensor([0])].array.memory is not memory


def test_too_little_memory_is_an_error_that_names_the_device(cupy):
    cupy.state.memory_left = 100

    with pytest.raises(OutOfMemoryError, match="cuda:1 is out of memory: Out of mem"):
        gv.zeros(1000, device="cuda:1")

    assert gv.zeros(2, device="cuda:1").tolist() == [0.0, 0.0]


# --- what CuPy lacks ------------------------------------------------------------------


def test_functions_that_cupy_lacks_run_on_the_host_with_a_warning(either):
    x = gv.ones(1, dtype=gv.float64, device="cuda").array

    with pytest.warns(
        UserWarning, match="CuPy cannot do spacing .* on the host, which"
    ):
        result = np.spacing(x)

    assert result.device is gv.device("cuda:0")
    assert result.item() == 2.0**-52


def test_a_function_that_runs_on_the_host_writes_into_its_out_argument(either):
    x = gv.ones(1, dtype=gv.float64, device="cuda").array
    out = gv.zeros(1, dtype=gv.float64, device="cuda").array

    with pytest.warns(UserWarning, match="CuPy cannot do spacing"):
        np.spacing(x, out=out)

    assert out.item() == 2.0**-52


def test_pythons_numbers_from_the_host_become_an_arrays(either):
    half = np.frompyfunc(lambda x: x / 2, 1, 1)

    with pytest.warns(UserWarning, match="CuPy cannot do <lambda>"):
        result = half(gv.arange(3, device="cuda").array)

    assert (result.dtype, result.tolist()) == (np.float64, [0.0, 0.5, 1.0])


def test_wrong_arguments_raise_what_numpy_raises(either):
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        np.sum(gv.ones(2, device="cuda").array, nonsense=True)


@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("shape", [(2, 3), (2, 0), (0, 2)])
def test_a_maximum_may_begin_somewhere(either, axis, shape):
    host = np.arange(float(np.prod(shape))).reshape(shape)
    there = gv.from_numpy(host).to("cuda").array

    result = np.max(there, axis=axis, initial=1.5)

    np.testing.assert_array_equal(result.to_host(), np.max(host, axis, initial=1.5))


@pytest.mark.parametrize("method", [np.maximum.reduce, np.minimum.reduce])
@pytest.mark.parametrize("options", [{}, {"axis": None}, {"axis": 1, "keepdims": True}])
def test_reductions_that_cupy_lacks_are_done_on_the_device(either, method, options):
    host = np.array([[1.0, 5.0], [3.0, 2.0]])
    there = gv.from_numpy(host).to("cuda").array

    result = method(there, **options)

    np.testing.assert_array_equal(result.to_host(), method(host, **options))


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("ufunc", [np.maximum, np.minimum, np.logaddexp])
def test_accumulations_that_cupy_lacks_are_done_on_the_device(either, ufunc, axis):
    host = np.random.default_rng(0).standard_normal((5, 11))
    if ufunc is not np.logaddexp:
        host[1, 3] = np.nan
    there = gv.from_numpy(host.copy()).to("cuda").array

    result = ufunc.accumulate(there, axis)

    np.testing.assert_allclose(
        result.to_host(), ufunc.accumulate(host, axis), rtol=1e-12
    )
    np.testing.assert_array_equal(there.to_host(), host)


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.complex128, np.bool_])
def test_dot_products_of_vectors_are_done_on_the_device(either, dtype):
    x, y = np.array([[1, 2, 0], [1, 1, 0]]), np.array([3, 4, 0])
    x, y = (x * (1 + 1j)).real.astype(dtype), y.astype(dtype)
    x, y = (x * 1j, y * 1j) if dtype is np.complex128 else (x, y)
    there = [gv.from_numpy(one).to("cuda").array for one in (x, y)]

    result = np.vecdot(*there)

    np.testing.assert_array_equal(result.to_host(), np.vecdot(x, y), strict=True)
    out = there[0][:, 0].copy()
    assert np.vecdot(*there, out=out) is out
    np.testing.assert_array_equal(out.to_host(), np.vecdot(x, y))


@pytest.mark.parametrize("values", [[1, -2, 3], -1, 2.0], ids=str)
def test_long_integers_are_added_where_indices_say_on_the_device(either, values):
    host, index = np.array([5, -6]), np.array([0, 1, 0])
    there = gv.from_numpy(host.copy()).to("cuda").array
    array = values
    if isinstance(values, list):
        values = np.array(values)
        array = gv.from_numpy(values).to("cuda").array

    np.add.at(there, index, array)

    np.add.at(host, index, np.asarray(values, np.int64))
    assert there.tolist() == host.tolist()


# --- linear algebra -------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        gv.linalg.inv,
        lambda x: gv.linalg.solve(x, x),
        gv.linalg.cholesky,
    ],
    ids=["inv", "solve", "cholesky"],
)
def test_an_algorithm_that_fails_raises(either, call):
    x = -gv.ones(2, 2, device="cuda")
    on_the_cpu = failure(call, x.cpu())
    assert on_the_cpu

    assert failure(call, x) == on_the_cpu
    np.linalg.inv(x.array.raw)  # by itself CuPy says nothing


def failure(call, x):
    try:
        call(x)
    except gv.linalg.LinAlgError as error:
        return str(error)
    return ""


# --- indices --------------------------------------------------------------------------


USES_OF_INDICES = {
    "subscript": lambda x, index: x[index],
    "second": lambda x, index: x[:, index],
    "after an ellipsis": lambda x, index: x[..., index],
    "after a mask": lambda x, index: x[gv.ones(4, dtype=gv.bool, device="cuda"), index],
    "assignment": lambda x, index: x.__setitem__(index, 0.0),
    "put": lambda x, index: x.index_put((index,), x[0], accumulate=True),
    "take": lambda x, index: np.take(x.array, index.array, axis=1),
    "take_along": lambda x, index: np.take_along_axis(x.array, index.array[:, None], 0),
    "put_along": lambda x, index: np.put_along_axis(
        x.array, index.array[:, None], 1.0, axis=0
    ),
}


@pytest.mark.parametrize("use", USES_OF_INDICES.values(), ids=USES_OF_INDICES)
@pytest.mark.parametrize("wait", ["item", "stream", "device"])
def test_an_index_out_of_range_is_told_when_the_program_waits(either, use, wait):
    x = gv.zeros(4, 4, device="cuda")
    index = gv.tensor([0, 4, 1, -1], device="cuda")
    side = gv.cuda.Stream()
    waits = {
        "item": lambda: gv.ones(1, device="cuda").item(),
        "stream": side.synchronize,
        "device": gv.cuda.synchronize,
    }
    with side:
        use(x, index)
        with pytest.raises(IndexError, match=r"out of range in .* on cuda:0/\d+: "):
            waits[wait]()

    gv.cuda.synchronize()  # it is told once


@pytest.mark.parametrize("use", USES_OF_INDICES.values(), ids=USES_OF_INDICES)
def test_indices_in_range_are_looked_at_without_a_word(cupy, use):
    x = gv.zeros(4, 4, device="cuda")
    index = gv.tensor([-4, 3, 1, -1], device="cuda")
    del cupy.log[:]

    use(x, index)
    assert [entry for entry in cupy.log if entry[0] == "synchronize"] == []

    gv.cuda.synchronize()


def test_no_indices_are_none_out_of_range(either):
    none = gv.zeros(0, dtype=gv.int64, device="cuda")

    assert gv.zeros(0, 2, device="cuda")[none].shape == (0, 2)
    gv.cuda.synchronize()


@pytest.mark.parametrize("number", [4, -5])
def test_a_single_number_out_of_range_is_told_at_once(either, number):
    x = gv.zeros(4, device="cuda").array

    with pytest.raises(IndexError, match="out of bounds for a dimension of size 4"):
        np.take(x, number)


# --- reports --------------------------------------------------------------------------


def test_kernels_are_reported_with_what_they_read_and_write(cupy):
    x = gv.ones(4, device="cuda")

    with gv.record() as recording:
        y = x[1:] * 2

    (launched,) = of_kind(recording, "KernelLaunched")
    read, written = of_kind(recording, "ArrayAccessed")
    assert (launched.name, launched.stream) == ("multiply", "cuda:0/0")
    assert (read.memory, read.layout) == (x.array.memory.id, "4;3;4;4")
    assert (written.memory, written.layout) == (y.array.memory.id, "0;3;4;4")
    assert (read.writes, written.writes) == (False, True)


def test_a_kernel_in_place_reports_one_write_and_no_new_memory(cupy):
    x = gv.ones(4, device="cuda")

    with gv.record() as recording:
        np.add(x.array, 1, out=x.array)

    (access,) = of_kind(recording, "ArrayAccessed")
    assert access.writes
    assert of_kind(recording, "MemoryAllocated", "MemoryFreed") == []


def test_views_are_no_kernels(cupy):
    x = gv.ones(4, device="cuda")

    with gv.record() as recording:
        x[1:].view(3, 1).t()

    assert of_kind(recording, "KernelLaunched", "ArrayAccessed") == []


def test_memory_is_reported(cupy):
    with gv.record() as recording:
        x = gv.ones(4, device="cuda")
        x.record_stream(gv.cuda.Stream())
        number = x.array.memory.id
        del x

    told = of_kind(recording, "MemoryAllocated", "MemoryShared", "MemoryFreed")
    assert [(type(one).__name__, one.memory, one.stream) for one in told] == [
        ("MemoryAllocated", number, "cuda:0/0"),
        ("MemoryShared", number, "cuda:0/1"),
        ("MemoryFreed", number, "cuda:0/0"),
    ]


def test_times_are_read_when_the_program_waits_anyway(cupy):
    with gv.record() as recording:
        gv.ones(4, device="cuda").exp()
        before = [entry for entry in cupy.log if entry[0] == "synchronize"]
        gv.cuda.synchronize()

    launched = of_kind(recording, "KernelLaunched")
    ran = of_kind(recording, "KernelRan")
    assert before == []
    assert [one.kernel for one in ran] == [one.kernel for one in launched]
    assert all(one.began_ns <= one.ended_ns for one in ran)


def test_a_kernel_still_at_work_is_read_later(cupy):
    with gv.record() as recording:
        x = gv.ones(4, device="cuda")
        cupy.state.is_behind = True  # on another stream than the one waited for
        gv.cuda.current_stream().synchronize()
        recording.mark("waited")
        cupy.state.is_behind = False
        x.cpu()

    told = of_kind(recording, "Mark", "KernelRan")
    assert [type(one).__name__ for one in told] == ["Mark", "KernelRan", "KernelRan"]


def test_nothing_is_timed_when_nobody_listens(cupy):
    gv.ones(4, device="cuda").exp()

    assert [entry for entry in cupy.log if entry[0] == "record"] == []


@pytest.mark.usefixtures("either")
@pytest.mark.parametrize("is_awaited", [False, True])
def test_a_program_has_to_wait_for_copies_of_pinned_memory(is_awaited):
    host = gv.zeros(3, pin_memory=True)
    with gv.check_streams(raise_error=False) as check:
        host.copy_(gv.ones(3, device="cuda"), non_blocking=True)
        if is_awaited:
            gv.cuda.synchronize()
        host.tolist()
        there = host.to("cuda", non_blocking=True)
        if is_awaited:
            gv.cuda.current_stream().synchronize()
        host.numpy()[0] = 7.0
        gv.cuda.synchronize()

    assert [one.first.action for one in check.races] == (
        [] if is_awaited else ["Memcpy DtoH", "Memcpy HtoD"]
    )
    assert there.shape == (3,)
