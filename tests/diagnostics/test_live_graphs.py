import gc
import sys
import threading
import types

import pytest

import gradviz as gv
from gradviz.diagnostics import live_graphs


@pytest.fixture(autouse=True)
def _nothing_of_other_tests():
    """Collect the garbage of other tests."""
    gc.collect()


class Keeper:
    def __init__(self):
        self.history = []


class Rude:
    @property
    def __class__(self):
        raise RuntimeError("leave me alone")


def graphs_from(node):
    gc.collect()
    return [one for one in live_graphs() if one.root is node]


def test_a_graph_that_is_held_is_found():
    x = gv.ones(1000, requires_grad=True)
    loss = x.exp().sum()

    (graph,) = graphs_from(loss.grad_fn)

    assert graph.size.nodes == 3
    assert graph.size.saved_bytes == 4000


def test_the_variable_that_holds_it_is_named():
    loss = gv.ones(3, requires_grad=True).exp().sum()

    (graph,) = graphs_from(loss.grad_fn)

    holders = " ".join(graph.holders)
    assert "variable loss of test_the_variable_that_holds_it_is_named()" in holders


def test_the_way_to_it_is_told():
    keeper = Keeper()
    for _ in range(3):
        keeper.history.append(gv.ones(3, requires_grad=True).exp().sum())

    (graph,) = graphs_from(keeper.history[1].grad_fn)

    assert any("keeper" in one and "history" in one for one in graph.holders)
    assert any("[1]" in one for one in graph.holders)


def test_the_holder_of_each_of_many_is_told():
    keeper = Keeper()
    for _ in range(300):
        keeper.history.append(gv.ones(3, requires_grad=True).exp().sum())
    gc.collect()

    holders = {one.root: one.holders for one in live_graphs()}

    for place, loss in enumerate(keeper.history):
        (holder,) = (one for one in holders[loss.grad_fn] if "keeper" in one)
        assert f"variable keeper.history[{place}]" in holder


def test_a_graph_that_is_gone_is_not_found():
    loss = gv.ones(3, requires_grad=True).exp().sum()
    number = loss.grad_fn.id
    del loss
    gc.collect()

    assert all(one.root.id != number for one in live_graphs())


def test_the_largest_come_first():
    small = gv.ones(1, requires_grad=True).exp().sum()
    large = gv.ones(5000, requires_grad=True).exp().sum()

    roots = [one.root for one in live_graphs()]

    assert roots.index(large.grad_fn) < roots.index(small.grad_fn)


def test_objects_of_strangers_are_left_alone():
    rude = [Rude()]
    loss = gv.ones(3, requires_grad=True).sum()

    assert len(graphs_from(loss.grad_fn)) == len(rude)


@pytest.mark.parametrize("is_enabled", [False, True])
def test_collections_are_as_they_were(is_enabled):
    was_enabled = gc.isenabled()
    (gc.enable if is_enabled else gc.disable)()
    try:
        live_graphs()
        assert gc.isenabled() == is_enabled
    finally:
        (gc.enable if was_enabled else gc.disable)()


def test_variables_of_other_threads_are_named():
    made, looked = threading.Event(), threading.Event()
    roots = []

    def hold():
        theirs = gv.ones(3, requires_grad=True).exp().sum()
        roots.append(theirs.grad_fn)
        made.set()
        looked.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    made.wait(60)
    (graph,) = graphs_from(roots[0])
    looked.set()
    thread.join()

    assert any("variable theirs of hold()" in one for one in graph.holders)


def holders_in(program):
    """Run a program as a script is run: who holds the graph that it made last."""
    script = {"__name__": "script"}
    exec(compile(f"{program}\n{LOOK}", "script.py", "exec"), script)
    return script["holders"]


LOOK = """
gc.collect()
holders = next(g.holders for g in gv.live_graphs() if g.root.id == number)
"""
MAKE = """
import collections, functools, gc
import gradviz as gv
def made():
    global number
    loss = gv.ones(3, requires_grad=True).exp().sum()
    number = loss.grad_fn.id
    return loss
class Log: pass
"""


@pytest.mark.parametrize(
    ("program", "name"),
    [
        ("kept = made()", "kept"),
        ("node = made().grad_fn", "node"),
        ("history = [made()]", "history[0]"),
        ("table = {'a': made()}", "table['a']"),
        ("table = {3: made()}", "table[3]"),
        ("table = {Log(): made()}", "table[<Log>]"),
        ("log = Log(); log.loss = made()", "log.loss"),
        ("log = Log(); log.val = {3: made()}", "log.val[3]"),
        ("deep = {'a': [1, {'b': (0, made())}]}", "deep['a'][1]['b'][1]"),
        ("f = (lambda loss: lambda: loss)(made())", "f.<closure loss>"),
        ("def f(a, b=made()): pass", "f.<default b>"),
        ("def f(*, a=1, b=made()): pass", "f.<default b>"),
        ("def f(): pass\nf.cache = made()", "f.cache"),
        ("class Log:\n    kept = made()", "Log.kept"),
        ("class Slots: __slots__ = 'x',\ns = Slots(); s.x = made()", "s.x"),
        ("last = collections.deque([1, made()])", "last[1]"),
        ("Pair = collections.namedtuple('Pair', 'a b'); p = Pair(0, made())", "p.b"),
        ("part = functools.partial(print, made())", "part.args[0]"),
        ("losses = {made()}", "losses.<element>"),
        ("f = Log().__eq__; f.__self__.loss = made()", "f.__self__.loss"),
    ],
)
def test_a_script_is_told_which_of_its_globals_holds_a_graph(program, name):
    assert holders_in(f"{MAKE}\n{program}") == (f"variable {name} of module script",)


def test_all_globals_that_hold_a_graph_are_told_the_private_ones_last():
    holders = holders_in(f"{MAKE}\n_1 = made(); Out = {{1: _1}}; loss = _1")

    assert holders == (
        "variable loss of module script",
        "variable _1 of module script",
        "variable Out[1] of module script",
    )


def test_a_global_of_another_module_is_told(monkeypatch):
    module = types.ModuleType("other")
    monkeypatch.setitem(sys.modules, "other", module)

    holders = holders_in(f"{MAKE}\nimport other; other.loss = made(); del other")

    assert holders == ("variable loss of module other",)


def test_variables_of_functions_that_have_stopped_are_told():
    suspended = "def steps():\n    loss = made()\n    yield\nrun = steps(); next(run)"
    failed = """
def fail():
    loss = made()
    raise ValueError
try:
    fail()
except ValueError as error:
    kept = error
"""
    assert holders_in(f"{MAKE}\n{suspended}") == (
        "variable loss of steps() at script.py:13, which is suspended",
    )
    assert holders_in(f"{MAKE}\n{failed}") == (
        "variable loss of fail() at script.py:14, whose traceback is kept",
    )


def test_no_code_of_the_program_runs_to_find_a_holder():
    program = """
class Touchy:
    def __getattr__(self, name): raise SystemExit
    def __repr__(self): raise SystemExit
    @property
    def first(self): raise SystemExit
class TouchyDict(dict):
    def items(self): raise SystemExit
    def __iter__(self): raise SystemExit
one = Touchy()
one.__dict__["first"] = TouchyDict()
one.__dict__["first"][Touchy()] = made()
"""
    assert holders_in(MAKE + program) == (
        "variable one.first[<Touchy>] of module script",
    )
