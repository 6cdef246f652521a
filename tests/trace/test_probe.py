import copy
import pickle

import pytest

from gradviz.trace import probe
from gradviz.trace.probe import METHODS, Guard, Probe, Tee


class Notebook(Probe):
    """Writes down what it hears."""

    def __init__(self):
        self.heard = []

    def node_started(self, task, node):
        self.heard.append((task, node))


class Grumpy(Notebook):
    def node_started(self, task, node):
        super().node_started(task, node)
        raise ValueError("not again")


def test_a_listener_can_be_copied_and_pickled():
    notebook = Notebook()
    notebook.node_started(0, 1)

    for again in (copy.copy(notebook), pickle.loads(pickle.dumps(notebook))):
        again.node_started(0, 2)
        assert again.heard[0] == (0, 1)


def test_every_method_says_what_happened():
    assert all(getattr(Probe, name).__doc__ for name in METHODS)


def test_nobody_listens_unless_installed():
    assert probe.current is None


def test_an_installed_listener_listens_until_it_is_uninstalled():
    notebook = Notebook()
    with probe.installed(notebook):
        assert probe.current is notebook

    assert probe.current is None


def test_several_listeners_hear_everything():
    one, two = Notebook(), Notebook()
    with probe.installed(one), probe.installed(two):
        probe.current.node_started(0, 1)
        with probe.installed(Notebook()):
            probe.current.node_started(0, 2)

    assert one.heard == two.heard == [(0, 1), (0, 2)]
    assert probe.current is None


def test_a_listener_that_leaves_takes_no_other_with_it():
    one, two = Notebook(), Notebook()
    probe.install(one)
    probe.install(two)
    probe.uninstall(one)
    try:
        assert probe.current is two
    finally:
        probe.uninstall(two)


class Meanwhile(Notebook):
    """Somebody else comes or goes while it is asked for what it can."""

    def __init__(self, happens):
        super().__init__()
        self.happens = happens

    @property
    def node_completed(self):
        happens, self.happens = self.happens, lambda: None
        happens()
        return super().node_completed


def test_a_listener_installed_during_the_installation_of_another_hears_events():
    late = Notebook()
    crowd = [Meanwhile(lambda: probe.install(late)), Notebook()]
    for one in crowd:
        probe.install(one)
    try:
        probe.current.node_started(0, 1)
    finally:
        for one in (*crowd, late):
            probe.uninstall(one)

    assert late.heard == [(0, 1)]
    assert probe.current is None


def test_a_listener_removed_during_the_installation_of_another_hears_no_events():
    gone = Notebook()
    probe.install(gone)
    stays = Meanwhile(lambda: probe.uninstall(gone))
    probe.install(stays)
    try:
        probe.current.node_started(0, 1)
    finally:
        probe.uninstall(stays)

    assert (gone.heard, stays.heard) == ([], [(0, 1)])
    assert probe.current is None


def test_uninstalling_a_stranger_does_nothing():
    probe.uninstall(Notebook())

    assert probe.current is None


def test_a_listener_that_fails_is_dropped_with_one_warning():
    grumpy = Grumpy()
    guard = Guard(grumpy)
    with pytest.warns(RuntimeWarning, match="Grumpy.node_started raised ValueError"):
        guard.node_started(0, 1)
    guard.node_started(0, 2)

    assert grumpy.heard == [(0, 1)]


def test_a_listener_that_behaves_is_passed_on_to():
    notebook = Notebook()
    guard = Guard(notebook)
    guard.node_started(0, 1)
    guard.node_completed(0, 1)

    assert notebook.heard == [(0, 1)]


def test_a_tee_passes_on_in_the_order_of_arrival():
    order = []

    class Named(Probe):
        def __init__(self, name):
            self.name = name

        def mark(self, text):
            order.append((self.name, text))

    Tee([Named("a"), Named("b")]).mark("x")

    assert order == [("a", "x"), ("b", "x")]
