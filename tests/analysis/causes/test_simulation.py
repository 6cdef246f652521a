import random
from collections import Counter

import msgspec
import pytest

from gradviz.analysis.causes.critical_path import find_critical_path
from gradviz.analysis.causes.recorded_work import Job, JobStep, PassWork, RecordedWork
from gradviz.analysis.causes.simulation import document_of, simulate, simulated_ns
from gradviz.errors import UserError
from gradviz.named_orders import schedules_named
from gradviz.ready_order import PyTorchSchedule
from tests.analysis.random_passes import random_trace
from tests.analysis.sent_messages import received, sent

CPU, DEVICE = 1, 2


@pytest.mark.parametrize("seed", range(6))
def test_on_one_thread_the_model_is_exact_with_passes_inside_of_each_other(seed):
    trace = random_trace(seed, num_devices=0)
    for task in trace.tasks:
        simulation = simulate(trace, task)

        assert simulation.unchanged_ns == simulation.measured_ns
        assert simulation.predicted_ns == simulation.measured_ns
        assert simulation.error == 0


def test_on_one_thread_a_node_that_is_free_saves_what_the_critical_path_says():
    trace = random_trace(3, num_devices=0)
    path = find_critical_path(trace, trace.tasks[0])

    for node in path.nodes:
        if node.task == path.task:
            simulation = simulate(trace, node.task, faster={node.node: 1e15})
            assert simulation.predicted_ns == node.if_free_ns


def job(queue, own_ns, *gives, priority=0, **changes):
    """A node that gives its gradients when it is done."""
    fields = {
        "pushing_ns": 0,
        "engine_ns": 0,
        "waking_ns": -1,
        "kernels_ns": 0,
        "steps": tuple(JobStep(own_ns, "give", one) for one in gives),
    }
    return Job(queue=queue, own_ns=own_ns, priority=priority, **(fields | changes))


def work(jobs):
    keys = {(0, node): one for node, one in jobs.items()}
    awaited = Counter(
        (0, step.what)
        for one in jobs.values()
        for step in one.steps
        if step.deed == "give"
    )
    roots = tuple(key for key in keys if not awaited[key])
    return RecordedWork(
        task=0,
        duration_ns=0,
        jobs=keys,
        awaited=awaited,
        passes={0: PassWork(roots, 0, 0, 0, len(jobs))},
        device_queues=frozenset(range(DEVICE, 10)),
    )


def branches():
    """The root gives three nodes of a device their gradients, of 30, 20 and 10."""
    return {
        0: job(CPU, 5, 1, 2, 3),
        1: job(DEVICE, 30, 4, priority=1),
        2: job(DEVICE, 20, 4, priority=2),
        3: job(DEVICE, 10, 5, priority=3),
        4: job(CPU, 7),
        5: job(CPU, 1),
    }


@pytest.mark.parametrize(
    ("threads", "expected"), [(1, 5 + 60 + 7), (2, 5 + 40 + 7), (3, 5 + 30 + 7)]
)
def test_more_threads_of_a_device_share_its_queue(threads, expected):
    """Two threads: node 3 and 2 begin, node 1 follows node 3, and is done at 45."""
    assert simulated_ns(work(branches()), device_threads=threads) == expected


def test_the_policy_says_which_node_is_first():
    """In order of arrival, node 3 is the last, and only node 5 remains."""
    fifo = schedules_named("fifo")

    assert simulated_ns(work(branches()), fifo) == 5 + 60 + 1


def test_a_faster_node_makes_shorter_what_waits_for_it():
    assert simulated_ns(work(branches()), faster={(0, 1): 3.0}) == 5 + 40 + 7


def test_a_thread_that_sleeps_wakes_up_as_it_did_or_as_is_usual():
    jobs = {
        0: job(CPU, 5, 1, 2),
        1: job(DEVICE, 10, waking_ns=4, engine_ns=2),
        2: job(DEVICE + 1, 1),
    }

    assert simulated_ns(work(jobs)) == 5 + 4 + 2 + 10
    jobs[1] = job(DEVICE, 10, engine_ns=2)
    jobs[2] = job(DEVICE + 1, 1, waking_ns=8)
    assert simulated_ns(work(jobs)) == 5 + 8 + 2 + 10


def test_with_infinite_streams_a_node_waits_for_its_own_kernels_only():
    waits = (JobStep(3, "wait", 100),)
    jobs = {0: job(CPU, 5, kernels_ns=20, steps=waits)}

    assert simulated_ns(work(jobs)) == 105
    assert simulated_ns(work(jobs), infinite_streams=True) == 25


def brute_force(jobs, num_threads):
    """From one end of a node to the next: who is ready, who takes what."""
    left = Counter(step.what for one in jobs.values() for step in one.steps)
    came = {node: (0, node) for node in jobs if not left[node]}
    free = {queue: num_threads(queue) for queue in {one.queue for one in jobs.values()}}
    running, done, now = {}, set(), 0
    while len(done) < len(jobs):
        ended = [node for node, end in running.items() if end == now]
        for node in sorted(ended, key=lambda node: running[node]):
            del running[node]
            done.add(node)
            free[jobs[node].queue] += 1
            for step in jobs[node].steps:
                left[step.what] -= 1
                if not left[step.what]:
                    came[step.what] = (now, step.what)
        for queue in free:
            ready = [node for node in came if jobs[node].queue == queue]
            ready.sort(key=lambda node: -jobs[node].priority)
            for node in ready[: free[queue]]:
                free[queue] -= 1
                del came[node]
                running[node] = now + jobs[node].own_ns
        if running:
            now = min(running.values())
    return now


@pytest.mark.parametrize("seed", range(40))
def test_random_graphs_take_as_long_as_by_looking_at_each_end_of_a_node(seed):
    rng = random.Random(seed)
    size = rng.randint(1, 25)
    priorities = rng.sample(range(1_000), size)
    jobs = {
        node: job(
            rng.randint(CPU, 1 + rng.randint(0, 3)),
            rng.randint(1, 40),
            *rng.sample(range(node), min(node, rng.randint(0, 3))),
            priority=priorities[node],
        )
        for node in range(size)
    }
    threads = rng.randint(1, 3)

    def num_threads(queue):
        return 1 if queue == CPU else threads

    expected = brute_force(jobs, num_threads)
    assert simulated_ns(work(jobs), device_threads=threads) == expected


def test_on_several_devices_the_error_is_that_of_the_model_with_nothing_changed():
    trace = random_trace(1, num_devices=3)
    one = simulate(trace, trace.tasks[0])
    other = simulate(trace, trace.tasks[0], device_threads=2)

    assert one.predicted_ns == one.unchanged_ns == other.unchanged_ns
    off_ns = one.unchanged_ns - one.measured_ns
    assert one.error == other.error == off_ns / one.measured_ns


def test_a_pass_that_did_not_complete_is_refused(pair):
    story, root, leaf = pair
    story.begin(9, [root, leaf], at=200)

    with pytest.raises(UserError, match="pass 9 is unfinished"):
        simulate(story.trace(), 9)


def test_a_pass_whose_gradients_are_lost_is_refused():
    jobs = branches()
    known = work(jobs)
    lost = known._replace(awaited=known.awaited + Counter({(0, 4): 1}))

    with pytest.raises(UserError, match="lacks gradients"):
        simulated_ns(lost)


def test_the_document_is_the_simulation_under_its_schema(pair):
    story, *_ = pair
    simulation = simulate(story.trace(), 7, faster={2: 2.0})

    document = document_of(simulation)

    assert (simulation.unchanged_ns, simulation.predicted_ns) == (100, 70)
    assert document.pop("schema") == "gradviz.simulation"
    assert document.pop("version") == 1
    assert document == msgspec.to_builtins(simulation)


def test_equal_nodes_leave_a_queue_as_pytorchs_heap_lets_them():
    """Of 1, 2, 3 and 4, all equal, the heap gives 1, 4, 3, 2: only 2 is long."""
    jobs = {
        0: job(CPU, 1, 1, 2, 3, 4),
        **{node: job(DEVICE, 1, node + 10) for node in (1, 2, 3, 4)},
        **{node + 10: job(CPU, 100 if node == 2 else 1) for node in (1, 2, 3, 4)},
    }

    assert simulated_ns(work(jobs), PyTorchSchedule) == 1 + 4 + 100


def test_a_workers_part_of_a_pass_is_simulated_by_itself(story, device):
    """Worker 1 runs pass 2 for pass 1, and gives a gradient back while it goes on."""
    back, ask = story.node(3, name="SendRpcBackward"), story.node(1, name="Recv")
    answer, call = story.node(2, name="RecvRpcBackward"), story.node(4, name="Send")
    story.begin(1, [ask, back], at=0)
    story.ran(1, ask, at=10, until=20)
    device(lambda: story.begin(2, [call, answer], at=30))
    device(lambda: story.take(2, answer, at=(35, 36, 37), queue=2))
    device(lambda: sent(story, 40, 2, answer.id, (1, 0, 9), pass_id=4))
    received(story, 45, back.id, (1, 0, 9), pass_id=4)
    story.ran(1, back, at=50, until=60)
    device(lambda: story.complete(2, answer, at=67))
    device(lambda: story.end(2, at=70))
    story.end(1, at=80)

    simulation = simulate(story.trace(), 2)

    assert simulation.measured_ns == simulation.unchanged_ns == 40
