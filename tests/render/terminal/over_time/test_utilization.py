from gradviz.analysis.causes.device_time import DeviceTime
from gradviz.analysis.causes.utilization import ThreadUse, Utilization, WaitedFor
from gradviz.render.terminal.over_time.utilization import print_utilization


def make_utilization(**changes):
    worker = ThreadUse(
        thread=3,
        name="gv_autograd_0",
        num_runs=1_200,
        running_ns=600,
        elsewhere_ns=0,
        engine_ns=100,
        waking_ns=0,
        dependency_ns=300,
        no_work_ns=0,
        stream_ns=0,
        unknown_ns=0,
        waited_for=(),
    )
    device = DeviceTime(
        device="sim:0",
        num_kernels=2,
        busy_ns=250,
        stream_ns=0,
        starting_ns=50,
        idle_ns=700,
    )
    fields = {
        "task": 4,
        "status": "completed",
        "is_whole": True,
        "origin_ns": 0,
        "duration_ns": 1_000,
        "threads": (worker,),
        "devices": (device,),
        "waited_for": (WaitedFor(4, 9, "MulBackward0", 300, 3),),
        "work_ns": 600,
        "span_ns": 400,
        "parallelism": 0.6,
        "possible_parallelism": 1.5,
    }
    return Utilization(**(fields | changes))


def words(lines):
    return [" ".join(line.split()) for line in lines]


def test_each_worker_and_device_has_its_parts_and_no_column_is_empty(shown):
    lines = words(
        shown(lambda console: print_utilization(make_utilization(), console), width=100)
    )

    assert "name runs busy running engine not ready" in lines
    assert "3 gv_autograd_0 1,200 60% 600 ns 100 ns 300 ns" in lines
    assert any("average parallelism 0.60 of a possible 1.50" in line for line in lines)
    assert any(line.startswith("sim:0 2") and "25%" in line for line in lines)
    assert "3 MulBackward0 9 4 300 ns" in lines


def test_missing_parts_of_the_trace_are_reported(shown):
    one = make_utilization(status="unfinished", is_whole=False)

    lines = words(shown(lambda console: print_utilization(one, console), width=100))

    assert "It has no end in the trace." in lines
    assert any(line.startswith("Events are missing") for line in lines)
