"""Work of CUDA devices, from profiler records that were written by hand."""

import threading

import pytest

from gradviz.analysis.findings.accumulation_streams import (
    accumulate_stream_mismatch,
)
from gradviz.analysis.findings.check import check_trace
from gradviz.analysis.findings.host_waits import host_wait
from gradviz.analysis.tables.executions import as_list, execution_columns
from gradviz.analysis.tables.kernels import kernels, launchers
from gradviz.pytorch.reconstruction.device_events import tell_devices
from gradviz.pytorch.reconstruction.device_records import split_records
from gradviz.pytorch.reconstruction.session import runs_of
from gradviz.pytorch.watching.pass_reports import tell_seen
from gradviz.trace import events as e
from tests.pytorch.conftest import Told, graph, leaf, node
from tests.pytorch.reconstruction.kineto_records import GpuRun

THREAD = threading.get_native_id()


def tell(pytorch: Told, gpu: GpuRun) -> None:
    functions, devices = split_records(gpu.events)
    runs = runs_of(functions, knows_threads=True)
    replays = pytorch.engine.go_through(pytorch._passes, runs, 0)
    tell_seen(replays)
    tell_devices(devices, replays, 0)


@pytest.fixture
def chain(pytorch):
    """A pass of three nodes: their functions run at 110, 130 and 150."""
    end = leaf()
    second = node("ExpBackward0", 5, end)
    root = node("SumBackward0", 6, second)
    pytorch.begin(graph(root), 100, 300)
    return root, second, end


def functions(gpu, chain):
    return [
        gpu.function(one, 110 + 20 * nr, 125 + 20 * nr) for nr, one in enumerate(chain)
    ]


def test_kernels_and_copies_belong_to_the_node_that_launched_them(pytorch, chain):
    gpu = GpuRun(THREAD)
    root, second, _ = functions(gpu, chain)
    gpu.launch("reduce_kernel", 112, (160, 170), 7, root)
    copy = gpu.call("cudaMemcpyAsync", 132, 134, second)
    gpu.work("Memcpy HtoD (Pageable -> Device)", 171, 180, 13, copy)
    tell(pytorch, gpu)

    launched = pytorch.events(e.KernelLaunched)
    assert [(one.node, one.stream, one.name, one.t_ns) for one in launched] == [
        (chain[0].id, "cuda:0/7", "reduce_kernel", 112),
        (chain[1].id, "cuda:0/13", "Memcpy HtoD (Pageable -> Device)", 132),
    ]
    ran = pytorch.events(e.KernelRan)
    assert [(one.began_ns, one.ended_ns) for one in ran] == [(160, 170), (171, 180)]
    assert not any(one.inferred for one in (*launched, *ran))


def test_the_lanes_are_those_of_simulated_devices(pytorch, chain):
    gpu = GpuRun(THREAD)
    root, *_ = functions(gpu, chain)
    gpu.launch("reduce_kernel", 112, (160, 170), 7, root)
    tell(pytorch, gpu)
    trace = pytorch.trace()

    (one,) = kernels(trace)
    found = launchers([one], as_list(trace, execution_columns(trace)))
    assert found[one.kernel].node == chain[0].id
    assert (one.device, one.stream) == ("cuda:0", "cuda:0/7")
    assert not check_trace(trace).violations


def test_streams_wait_where_the_engine_hands_on_a_gradient(pytorch, chain):
    gpu = GpuRun(THREAD)
    functions(gpu, chain)
    gpu.handover(126, producer=7, consumer=20)
    tell(pytorch, gpu)

    (mark,) = pytorch.events(e.EventRecorded)
    (wait,) = pytorch.events(e.StreamWaited)
    assert (mark.stream, mark.node, mark.t_ns) == ("cuda:0/7", chain[0].id, 126)
    assert (wait.stream, wait.event) == ("cuda:0/20", mark.event)
    assert (wait.node, wait.producer) == (chain[1].id, chain[0].id)
    assert not mark.inferred
    assert not wait.inferred
    assert not check_trace(pytorch.trace()).violations


def test_a_leaf_of_another_stream_is_advice(pytorch, chain):
    gpu = GpuRun(THREAD)
    functions(gpu, chain)
    gpu.handover(146, producer=20, consumer=7)
    tell(pytorch, gpu)

    (found,) = accumulate_stream_mismatch(pytorch.trace())
    assert (found.node, found.detail) == (chain[2].id, "cuda:0/7 for cuda:0/20")
    assert (found.certainty, found.count, found.times) == ("certain", 0, 1)


def test_a_leaf_that_an_earlier_pass_ran_says_so(pytorch):
    end = leaf()
    for number, begin in ((5, 100), (6, 400)):
        root = node("ExpBackward0", number, end)
        pytorch.begin(graph(root), begin, begin + 200)
        gpu = GpuRun(THREAD)
        gpu.function(root, begin + 10, begin + 20)
        gpu.function(end, begin + 50, begin + 60)
        if begin == 400:
            gpu.handover(begin + 30, producer=20, consumer=7)
        tell(pytorch, gpu)
        pytorch._passes = []

    (found,) = accumulate_stream_mismatch(pytorch.trace())
    assert (found.node, found.count) == (end.id, 1)


def test_a_node_between_others_that_waits_is_no_such_advice(pytorch, chain):
    gpu = GpuRun(THREAD)
    functions(gpu, chain)
    gpu.handover(126, producer=7, consumer=20)
    tell(pytorch, gpu)

    assert not [*accumulate_stream_mismatch(pytorch.trace())]


def test_a_wait_inside_of_a_function_is_that_nodes(pytorch, chain):
    gpu = GpuRun(THREAD)
    functions(gpu, chain)
    gpu.handover(132, producer=7, consumer=20)
    tell(pytorch, gpu)

    (wait,) = pytorch.events(e.StreamWaited)
    assert (wait.node, wait.producer) == (chain[1].id, -1)


def test_a_node_that_hands_on_to_several_does_not_say_who_waits(pytorch):
    sides = node("SinBackward0", 2, leaf()), node("CosBackward0", 1, leaf())
    root = node("AddBackward0", 3, *sides)
    pytorch.begin(graph(root), 100, 300)
    gpu = GpuRun(THREAD)
    gpu.function(root, 110, 120)
    gpu.handover(121, producer=7, consumer=20)
    gpu.function(sides[0], 140, 150)
    tell(pytorch, gpu)

    (wait,) = pytorch.events(e.StreamWaited)
    assert (wait.node, wait.producer) == (-1, root.id)


def test_without_metadata_the_event_is_inferred_from_its_thread(pytorch, chain):
    gpu = GpuRun(THREAD, has_metadata=False)
    root, *_ = functions(gpu, chain)
    gpu.launch("reduce_kernel", 112, (160, 170), 7, root)
    gpu.handover(126, producer=7, consumer=20)
    tell(pytorch, gpu)

    (mark,) = pytorch.events(e.EventRecorded)
    (wait,) = pytorch.events(e.StreamWaited)
    assert (mark.stream, wait.stream, wait.event) == (
        *("cuda:0/7", "cuda:0/20"),
        mark.event,
    )
    assert mark.inferred
    assert wait.inferred


def test_a_wait_of_which_no_stream_is_known_is_left_out(pytorch, chain):
    gpu = GpuRun(THREAD)
    functions(gpu, chain)
    gpu.call("cudaEventRecord", 126, 127)
    gpu.call("cudaStreamWaitEvent", 128, 129)
    tell(pytorch, gpu)

    assert not pytorch.events(e.EventRecorded, e.StreamWaited)


def test_as_a_pass_ends_its_callers_stream_waits_for_those_of_leaves(pytorch, chain):
    gpu = GpuRun(THREAD)
    functions(gpu, chain)
    gpu.handover(200, producer=20, consumer=7)
    tell(pytorch, gpu)

    (wait,) = pytorch.events(e.LeafStreamSynced)
    assert (wait.stream, wait.caller_stream) == ("cuda:0/20", "cuda:0/7")
    assert not pytorch.events(e.StreamWaited)


def test_the_host_waits_inside_of_a_node(pytorch, chain):
    gpu = GpuRun(THREAD)
    _, second, _ = functions(gpu, chain)
    copy = gpu.call("cudaMemcpyAsync", 131, 132, second)
    gpu.work("Memcpy DtoH (Device -> Pageable)", 133, 139, 7, copy)
    wait = gpu.call("cudaStreamSynchronize", 133, 140, second)
    gpu.work("Stream Sync", 133, 140, 7, wait)
    tell(pytorch, gpu)

    (waited,) = pytorch.events(e.StreamSynchronized)
    assert (waited.node, waited.stream, waited.t_ns) == (chain[1].id, "cuda:0/7", 140)
    assert not waited.inferred


def test_a_host_that_waits_is_advice_with_its_node(pytorch, chain):
    gpu = GpuRun(THREAD)
    _, second, _ = functions(gpu, chain)
    for begin in (132, 136):
        wait = gpu.call("cudaStreamSynchronize", begin, begin + 4, second)
        gpu.work("Stream Sync", begin, begin + 4, 7, wait)
    tell(pytorch, gpu)

    (found,) = host_wait(pytorch.trace())
    assert (found.node, found.detail, found.count) == (chain[1].id, "cuda:0/7", 2)
    (started,) = [
        one.t_ns for one in pytorch.events(e.NodeStarted) if one.node == chain[1].id
    ]
    assert found.cost_ns == (136 - started) + (140 - started)


def test_of_a_host_that_waits_the_stream_is_inferred_where_no_record_says(
    pytorch, chain
):
    gpu = GpuRun(THREAD)
    _, second, _ = functions(gpu, chain)
    gpu.call("cudaStreamSynchronize", 111, 112)  # the thread gave no stream any work
    copy = gpu.call("cudaMemcpyAsync", 131, 132, second)
    gpu.work("Memcpy DtoH (Device -> Pageable)", 133, 139, 7, copy)
    gpu.call("cudaStreamSynchronize", 133, 140, second)
    tell(pytorch, gpu)

    (waited,) = pytorch.events(e.StreamSynchronized)
    assert (waited.node, waited.stream) == (chain[1].id, "cuda:0/7")
    assert waited.inferred


def test_the_host_waits_for_a_device_and_for_an_event(pytorch, chain):
    gpu = GpuRun(THREAD)
    functions(gpu, chain)
    wait = gpu.call("cudaDeviceSynchronize", 112, 118)
    gpu.work("Context Sync", 112, 118, -1, wait)
    record = gpu.call("cudaEventRecord", 131, 132)
    wait = gpu.call("cudaEventSynchronize", 133, 138)
    gpu.work(
        "Event Sync",
        *(133, 138, -1, wait),
        wait_on_stream=7,
        wait_on_cuda_event_record_corr_id=record,
    )
    tell(pytorch, gpu)

    (device,) = pytorch.events(e.DeviceSynchronized)
    (mark,) = pytorch.events(e.EventRecorded)
    (event,) = pytorch.events(e.EventSynchronized)
    assert (device.device, device.node) == ("cuda:0", chain[0].id)
    assert (event.event, event.node, event.t_ns) == (mark.event, chain[1].id, 138)


def test_calls_outside_of_all_passes_are_not_told(pytorch, chain):
    gpu = GpuRun(THREAD)
    functions(gpu, chain)
    gpu.launch("early", 50, (60, 70), 7)
    gpu.launch("late", 400, (410, 420), 7)
    tell(pytorch, gpu)

    assert not pytorch.events(e.KernelLaunched)


def test_work_without_its_call_is_not_told(pytorch, chain):
    gpu = GpuRun(THREAD)
    functions(gpu, chain)
    gpu.work("from_before", 60, 70, 7, 999)
    tell(pytorch, gpu)

    assert not pytorch.events(e.KernelLaunched)


def test_the_work_of_the_profiler_itself_is_no_node(pytorch, chain):
    gpu = GpuRun(THREAD)
    functions(gpu, chain)
    gpu.call("Activity Buffer Request", 112, 118)
    gpu.call("Lazy Function Loading", 132, 134)
    tell(pytorch, gpu)

    assert not pytorch.events(e.Unexplained)
    assert len(pytorch.events(e.NodeStarted)) == 3


def test_a_graph_of_kernels_has_one_call(pytorch, chain):
    gpu = GpuRun(THREAD)
    root, *_ = functions(gpu, chain)
    call = gpu.call("cudaGraphLaunch", 112, 114, root)
    gpu.work("one", 120, 130, 7, call)
    gpu.work("two", 130, 140, 7, call)
    tell(pytorch, gpu)

    launched = pytorch.events(e.KernelLaunched)
    assert [one.name for one in launched] == ["one", "two"]
    assert {one.node for one in launched} == {chain[0].id}


def test_metadata_that_is_no_json_is_not_read(pytorch, chain):
    gpu = GpuRun(THREAD)
    functions(gpu, chain)
    gpu.handover(126, producer=7, consumer=20)
    gpu.events[-1].metadata_json = lambda: '"wait_on_stream": '
    tell(pytorch, gpu)

    assert not pytorch.events(e.StreamWaited)
