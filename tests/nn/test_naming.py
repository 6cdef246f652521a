import threading

import pytest

import gradviz as gv
from gradviz import nn
from gradviz.engine.module_path import MODULE_PATH


class Probe(nn.Module):
    """Notes the path under which it runs."""

    def __init__(self, seen):
        super().__init__()
        self.seen = seen

    def forward(self, x):
        self.seen.append(MODULE_PATH.get())
        return x * 2


class Model(nn.Module):
    def __init__(self, seen):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Sequential(Probe(seen)) for _ in range(2)])
        self.head = Probe(seen)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x + 1)


@pytest.fixture
def seen():
    return []


def test_a_module_runs_under_its_name_in_the_model(seen):
    Model(seen)(1)

    assert seen == ["blocks.0.0", "blocks.1.0", "head"]
    assert MODULE_PATH.get() == ""


def test_the_outermost_module_is_the_model(seen):
    model = Model(seen)
    model.blocks[1](1)
    model.head(1)

    assert seen == ["0", ""]


def test_a_module_of_no_part_runs_under_the_name_of_its_caller(seen):
    class Borrows(nn.Module):
        def forward(self, x):
            return Probe(seen)(x)

    nn.Sequential(Borrows())(1)

    assert seen == ["0"]


def test_names_follow_changes_of_the_model(seen):
    model = nn.Sequential(Probe(seen))
    model(1)
    model.insert(0, nn.Identity())
    model(1)
    outer = nn.Sequential(model)
    outer(1)

    assert seen == ["0", "1", "0.1"]


def test_an_error_ends_a_module_too(seen):
    class Fails(nn.Module):
        def forward(self, x):
            raise ArithmeticError

    with pytest.raises(ArithmeticError):
        nn.Sequential(nn.Sequential(Fails()))(1)
    assert MODULE_PATH.get() == ""


def test_every_thread_is_in_a_module_of_its_own(seen):
    class Starts(nn.Module):
        def forward(self, x):
            thread = threading.Thread(target=lambda: seen.append(MODULE_PATH.get()))
            thread.start()
            thread.join()
            return x

    nn.Sequential(Starts())(1)

    assert seen == [""]


def test_nodes_carry_the_name_of_their_module(seen):
    y = Model(seen)(gv.ones(1, requires_grad=True))

    head = y.grad_fn
    between = head.next_functions[0][0]
    assert (head.module, between.module) == ("head", "")
    assert between.next_functions[0][0].module == "blocks.1.0"


def test_a_trace_shows_the_names(seen):
    with gv.record() as recording:
        Model(seen)(gv.ones(1, requires_grad=True)).backward()

    modules = {(node.name, node.module) for node in recording.trace.nodes.values()}
    assert ("MulBackward0", "blocks.0.0") in modules
    assert ("AddBackward0", "") in modules
