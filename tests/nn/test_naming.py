import gc
import itertools
import sys
import threading
import weakref

import pytest

import gradviz as gv
from gradviz import nn
from gradviz.engine.graph.node import MODULE_PATH, MODULE_PATHS
from gradviz.nn import calling, naming


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


@pytest.fixture(autouse=True)
def numbered_from_one(monkeypatch):
    monkeypatch.setattr(naming, "_roots", weakref.WeakKeyDictionary())
    monkeypatch.setattr(naming, "_numbers", {})
    naming.forget()
    yield
    naming.forget()


def test_a_module_runs_under_its_name_in_the_model(seen):
    Model(seen)(1)

    assert seen == ["Model.blocks.0.0", "Model.blocks.1.0", "Model.head"]
    assert MODULE_PATH.get() == ""


def test_the_outermost_module_is_the_model(seen):
    model = Model(seen)
    model.blocks[1](1)
    model.head(1)

    assert seen == ["Sequential.0", "Probe"]


def test_a_module_of_no_part_runs_under_the_name_of_its_caller(seen):
    class Borrows(nn.Module):
        def forward(self, x):
            return Probe(seen)(x)

    nn.Sequential(Borrows())(1)

    assert seen == ["Sequential.0"]


def test_names_follow_changes_of_the_model(seen):
    model = nn.Sequential(Probe(seen))
    model(1)
    model.insert(0, nn.Identity())
    model(1)
    outer = nn.Sequential(model)
    outer(1)

    assert seen == ["Sequential.0", "Sequential.1", "Sequential#2.0.1"]


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
    assert (head.module, between.module) == ("Model.head", "Model")
    assert between.next_functions[0][0].module == "Model.blocks.1.0"


def test_a_trace_shows_the_names(seen):
    with gv.record() as recording:
        Model(seen)(gv.ones(1, requires_grad=True)).backward()

    modules = {(node.name, node.module) for node in recording.trace.nodes.values()}
    assert ("MulBackward0", "Model.blocks.0.0") in modules
    assert ("AddBackward0", "Model") in modules


class TestRoots:
    def test_two_of_one_class_are_numbered_in_the_order_of_their_first_calls(
        self, seen
    ):
        first, second, third = (nn.Sequential(Probe(seen)) for _ in range(3))
        for model in (second, first, second, third):
            model(1)

        assert seen == [
            "Sequential.0",
            "Sequential#2.0",
            "Sequential.0",
            "Sequential#3.0",
        ]

    def test_a_number_is_not_used_again(self, seen):
        """Nodes of one model are not taken for those of a later one."""
        for _ in range(3):
            nn.Sequential(Probe(seen))(1)

        assert seen == ["Sequential.0", "Sequential#2.0", "Sequential#3.0"]

    def test_it_may_be_given_a_name(self, seen):
        model = nn.name_root(nn.Sequential(Probe(seen)), "critic")
        model(1)
        nn.name_root(model, "critic")(1)
        nn.name_root(model, "judge")(1)
        nn.name_root(nn.Sequential(Probe(seen)), "judge")(1)

        assert seen == ["critic.0", "critic.0", "judge.0", "judge#2.0"]

    @pytest.mark.parametrize("name", ["", "a.b", "a#2"])
    def test_a_name_that_a_path_could_not_hold_is_refused(self, name):
        with pytest.raises(ValueError, match="as the name of a model"):
            nn.name_root(nn.Identity(), name)

    def test_a_module_may_be_a_root_and_a_part_and_a_part_of_two(self, seen):
        shared = Probe(seen)
        one, two = nn.Sequential(shared), nn.Sequential(nn.Identity(), shared)
        for model in (one, two, shared):
            model(1)

        assert seen == ["Sequential.0", "Sequential#2.1", "Probe"]

    def test_a_wrapper_is_the_root(self, seen):
        class Wrapper(nn.Module):
            def __init__(self, module):
                super().__init__()
                self.module = module

            def forward(self, x):
                return self.module(x)

        model = nn.Sequential(Probe(seen))
        model(1)
        Wrapper(model)(1)

        assert seen == ["Sequential.0", "Wrapper.module.0"]

    def test_nothing_is_kept_of_models_that_are_gone(self, seen):
        for _ in range(100):
            nn.Sequential(Probe(seen))(1)
        gc.collect()

        assert len(naming._roots) == len(naming._known) == 0
        assert list(naming._numbers) == ["Sequential"]

    def test_threads_that_call_first_at_once_number_them_apart(self):
        models = [nn.Identity() for _ in range(20)]
        threads = [threading.Thread(target=model, args=(1,)) for model in models]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert len(set(naming._roots.values())) == 20

    @pytest.mark.parametrize("use_reentrant", [True, False])
    def test_a_module_that_a_checkpoint_runs_again_keeps_its_place(
        self, seen, use_reentrant
    ):
        class Checkpointed(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = nn.Sequential(Probe(seen), nn.Tanh())

            def forward(self, x):
                return gv.utils.checkpoint.checkpoint(
                    self.inner, x, use_reentrant=use_reentrant
                )

        Checkpointed()(gv.ones(1, requires_grad=True)).sum().backward()

        assert seen == ["Checkpointed.inner.0"] * 2
        assert MODULE_PATH.get() == ""


class Interrupt:
    """Raises KeyboardInterrupt where Python looks for signals the nth time."""

    def __init__(self, number):
        self.number = number
        self.has_struck = False

    def hear(self, frame, event, _):
        is_ours = frame.f_code.co_filename in {calling.__file__, naming.__file__}
        if is_ours and event in {"call", "c_return"}:
            self.number -= 1
            if self.number == 0:
                self.has_struck = True
                sys.setprofile(None)
                raise KeyboardInterrupt


def test_an_interrupt_at_any_point_of_a_call_leaves_no_module_running():
    model, x = Model([]), gv.ones(1)
    model(x)  # from now on each call goes through the same points
    for number in itertools.count(1):
        interrupt = Interrupt(number)
        sys.setprofile(interrupt.hear)
        try:
            model(x)
        except KeyboardInterrupt:
            pass
        finally:
            sys.setprofile(None)
        assert (MODULE_PATH.get(), MODULE_PATHS.get()) == ("", None), number
        if not interrupt.has_struck:
            break
    assert number > 10
