"""Models that wait for the writer."""

import pytest

from gradviz.trace.format.strings import Strings
from gradviz.trace.probe import MAX_PARAMETERS, Model, ModelParameter
from gradviz.trace.recording import pending_models
from gradviz.trace.recording.pending_models import PendingModels


class Desk:
    """Pending models whose definitions are put into words again."""

    def __init__(self):
        self.strings = Strings()
        self.models = PendingModels(self.strings)
        self.texts = {}

    def take(self):
        rows = self.models.take()
        self.texts.update(self.strings.take())
        return [
            (
                self.texts[row.name],
                row.num_parameters,
                [self.texts[one.names] for one in row.parameters],
            )
            for row in rows
        ]


@pytest.fixture
def desk():
    return Desk()


def parameter(*names, requires_grad=True):
    return ModelParameter(names, (2, 3), "float32", "cpu", requires_grad)


def model(name, *parameters, more=0):
    return Model(name, parameters, len(parameters) + more)


def test_a_model_is_defined_once_however_often_it_runs(desk):
    net = model("Net", parameter("Net.weight"), parameter("Net.a", "Net.b\n"))
    for _ in range(3):
        desk.models.define(net)
        desk.models.define(model(*net[:1], *net[1]))  # equal, and another object

    assert desk.take() == [("Net", 2, ["Net.weight", "Net.a\nNet.b "])]
    assert desk.take() == []


def test_a_model_that_has_changed_is_defined_again(desk):
    desk.models.define(model("Net", parameter("Net.weight")))
    desk.models.define(model("Net", parameter("Net.weight", requires_grad=False)))

    assert [name for name, *_ in desk.take()] == ["Net", "Net"]


def test_parameters_beyond_the_most_are_only_counted(desk):
    many = [parameter(f"Big.{number}") for number in range(MAX_PARAMETERS)]
    desk.models.define(model("Net", parameter("Net.weight")))
    desk.models.define(model("Big", *many, more=5))
    desk.models.define(model("Late", parameter("Late.weight")))

    net, big, late = desk.take()
    assert net == ("Net", 1, ["Net.weight"])
    assert (big[1], len(big[2])) == (MAX_PARAMETERS + 5, MAX_PARAMETERS - 1)
    assert late == ("Late", 1, [])


def test_a_model_keeps_its_parameters_if_there_is_no_room_for_those_it_gets(
    desk, monkeypatch
):
    monkeypatch.setattr(pending_models, "MAX_PARAMETERS", 2)
    desk = Desk()
    desk.models.define(model("Net", parameter("Net.a"), parameter("Net.b")))
    desk.models.define(model("Net", parameter("Net.a"), parameter("Net.c")))

    assert desk.take() == [("Net", 2, ["Net.a", "Net.b"])]


def test_no_more_definitions_than_the_most_are_kept(desk, monkeypatch):
    monkeypatch.setattr(pending_models, "MAX_MODELS", 3)
    for number in range(10):
        desk.models.define(model(f"Net#{number}"))

    assert len(desk.take()) == 3
    assert len(desk.models._known) == 3
