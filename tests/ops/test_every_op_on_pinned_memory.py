"""Every op of the table on pinned memory, whose arrays are of a class of their own."""

import pytest

import gradviz as gv
from gradviz.trace import probe
from tests.ops.cases.case import tensors_in
from tests.ops.cases.each_op import each_op, try_all
from tests.ops.cases.table import CASES
from tests.ops.test_every_op import EPSILON, assert_close, leaves, outcome

#: They look at the shape of an argument, or give it the factor 0.
NOT_READ = {
    "Tensor.view_as([2,3],d[3,2])": [1],
    "Tensor.reshape_as([2,3],d[3,2])": [1],
    "Tensor.expand_as([3],d[2,3])": [1],
    "addmm([2,4],[2,3],[3,4],beta=0)": [0],
}

#: Ops that put an argument into a larger array.
PUTTING = ("nn.functional.pad(", "block_diag(", "diag_embed(", "select_scatter(")


class Ear(probe.Probe):
    """Hears which memory was accessed."""

    def __init__(self):
        self.heard = set()

    def host_accessed(self, memory, layout, writes):
        self.heard.add(memory)


@each_op((case,) for case in CASES if case.id.startswith(PUTTING))
def test_an_op_that_puts_an_argument_into_a_larger_array_reports_a_read(tries):
    try_all(tries, check_what_is_read)


@pytest.mark.stress
@each_op((case,) for case in CASES if not case.id.startswith(PUTTING))
def test_every_other_op_reports_the_arguments_that_it_reads(tries):
    try_all(tries, check_what_is_read)


def check_what_is_read(case):
    gv.sim.set_device_count(2)
    there = [one.detach().pin_memory() for one in leaves(case, case.dtypes[0])]
    memories = [one.array.place() for one in there]
    ear = Ear()
    with probe.installed(ear):
        results = tensors_in(case.call(gv, list(there)))
        for result in results:  # of which some are views
            result.sum()

    not_read = [
        place
        for place, memory in enumerate(memories)
        if memory is not None and memory[0] not in ear.heard
    ]
    if any(one.numel() for one in results):
        assert not_read == NOT_READ.get(case.id, [])


@pytest.mark.stress
@each_op((case,) for case in CASES)
def test_an_outcome_is_that_of_other_memory(tries):
    try_all(tries, check_outcome)


def check_outcome(case):
    gv.sim.set_device_count(2)
    dtype = case.dtypes[0]
    expected = outcome(case, leaves(case, dtype))

    there = [
        one.detach().pin_memory().requires_grad_(one.requires_grad)
        for one in leaves(case, dtype)
    ]

    assert_close(outcome(case, there), expected, EPSILON.get(dtype, 1e-12))
    assert all(one.is_pinned() for one in there)
