"""Buckets of data-parallel models, read from models that are not PyTorch's."""

from types import SimpleNamespace

import pytest

from gradviz.pytorch.nodes.data_parallel import DataParallelModels


class Parameter:
    requires_grad, device = True, "cpu"

    def __init__(self, size, dtype="float32"):
        self.size, self.dtype = size, dtype

    def numel(self):
        return self.size

    def element_size(self):
        return 1


class Layer:
    def __init__(self, *parameters):
        self.parameters = parameters

    def named_modules(self):
        return [("", self)]

    def named_parameters(self, *, recurse):
        assert not recurse
        return [(f"p{number}", one) for number, one in enumerate(self.parameters)]


class Wrapper:
    """The attributes of DistributedDataParallel that are read."""

    parameters_to_ignore, bucket_bytes_cap = frozenset(), 8
    find_unused_parameters = static_graph = _has_rebuilt_buckets = False
    _comm_hooks = ()
    process_group = SimpleNamespace(group_name="0", rank=lambda: 1, size=lambda: 4)

    def __init__(self, layer, **logged):
        self.module = layer
        self.logged = {"num_parameter_tensors": len(layer.parameters)} | logged

    def _get_ddp_logging_data(self):
        return self.logged


@pytest.fixture
def models():
    distributed = SimpleNamespace(
        is_available=lambda: True,
        is_initialized=lambda: False,
        _DEFAULT_FIRST_BUCKET_BYTES=4,
    )
    parallel = SimpleNamespace(DistributedDataParallel=Wrapper)
    nn = SimpleNamespace(parallel=parallel)
    torch = SimpleNamespace(nn=nn, distributed=distributed)
    return DataParallelModels(SimpleNamespace(torch=torch))


def buckets_of(models, model):
    models.note(model)
    places = {one: place for place, one in enumerate(model.module.parameters)}
    return [
        [[places[one] for one in bucket] for bucket in plan.buckets]
        for plan in models.plans(lambda _: "Net")
    ]


def layer(*sizes):
    return Layer(*map(Parameter, sizes))


def test_buckets_that_the_reducer_logs_are_taken(models):
    model = Wrapper(
        layer(4, 4, 4),
        has_rebuilt_buckets=1,
        rebuilt_per_bucket_param_indices="2 0, 1",
    )

    assert buckets_of(models, model) == [[[2, 0], [1]]]
    (plan,) = models.plans(lambda _: "Net")
    assert (plan.model, plan.group) == ("Net", ("0", 1, 4))


def test_the_first_buckets_are_computed_and_have_the_logged_sizes(models):
    model = Wrapper(layer(4, 4, 4), bucket_sizes="12")

    assert buckets_of(models, model) == [[[0, 1, 2]]]


def test_the_first_buckets_of_several_types_are_reduced_from_the_last(models):
    one, other = Parameter(4), Parameter(4, dtype="float64")
    model = Wrapper(Layer(one, other), bucket_sizes="4, 4")

    assert buckets_of(models, model) == [[[1], [0]]]


def test_rebuilt_buckets_follow_the_order_of_the_gradients_until_they_are_logged(
    models,
):
    model = Wrapper(
        layer(4, 4, 4, 4), prev_iteration_grad_ready_order_indices="3, 1, 0, 2"
    )
    model._has_rebuilt_buckets = True

    assert buckets_of(models, model) == [[[3], [1, 0], [2]]]


@pytest.mark.parametrize(
    "logged",
    [
        {"bucket_sizes": "11"},
        {"num_parameter_tensors": 2, "bucket_sizes": "12"},
        {},
    ],
    ids=["other sizes", "other parameters", "other names"],
)
def test_buckets_that_do_not_fit_what_is_logged_are_unknown(models, logged):
    assert buckets_of(models, Wrapper(layer(4, 4, 4), **logged)) == []


def test_other_modules_have_no_buckets(models):
    models.note(layer(4))

    assert models.plans(lambda _: "Net") == []


def test_a_process_that_has_met_no_other_has_no_rank(models):
    assert models.default_group() == ("", -1, -1)
