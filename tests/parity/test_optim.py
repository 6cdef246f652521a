"""Optimizers and schedulers take the steps that PyTorch's take."""

import numpy as np
import pytest

import gradviz as gv

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

NUM_STEPS = 20
OPTIMIZERS = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.01, "maximize": True}),
    ("Adam", {}),
    ("Adam", {"lr": 0.1, "betas": (0.8, 0.9), "eps": 1e-3}),
    ("Adam", {"lr": 0.1, "weight_decay": 0.2}),
    ("Adam", {"lr": 0.1, "amsgrad": True}),
    ("Adam", {"lr": 0.1, "maximize": True}),
    ("AdamW", {"lr": 0.1}),
    ("AdamW", {"lr": 0.1, "weight_decay": 0.3, "amsgrad": True}),
    ("RMSprop", {}),
    ("RMSprop", {"momentum": 0.9, "centered": True, "weight_decay": 0.1}),
    ("Adagrad", {"lr": 0.1}),
    ("Adagrad", {"lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 1}),
    ("Adadelta", {"weight_decay": 0.1}),
    ("Adadelta", {"rho": 0.8, "eps": 1e-3, "maximize": True}),
    ("Adamax", {"lr": 0.1}),
    ("Adamax", {"betas": (0.8, 0.9), "weight_decay": 0.1, "maximize": True}),
    ("RAdam", {"lr": 0.1, "betas": (0.8, 0.9)}),
    ("RAdam", {"weight_decay": 0.1}),
    ("RAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("Rprop", {"lr": 0.1}),
    ("Rprop", {"etas": (0.4, 1.5), "step_sizes": (1e-3, 0.3)}),
]
#: Of these PyTorch keeps numbers in single precision.
LESS_EXACT = [
    ("ASGD", {"lr": 0.1}),
    ("NAdam", {"lr": 0.1, "momentum_decay": 0.1}),
    ("NAdam", {"weight_decay": 0.1}),
    ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("ASGD", {"lambd": 0.1, "alpha": 0.5, "t0": 3, "weight_decay": 0.1}),
]
SEARCHES = [
    {},
    {"lr": 0.1, "history_size": 3},
    {"max_iter": 7, "tolerance_change": 1e-3},
    {"line_search_fn": "strong_wolfe"},
    {"line_search_fn": "strong_wolfe", "lr": 30.0, "max_eval": 12},
]
SCHEDULERS = [
    ("StepLR", {"step_size": 3, "gamma": 0.5}),
    ("MultiStepLR", {"milestones": [2, 5, 11], "gamma": 0.3}),
    ("ExponentialLR", {"gamma": 0.9}),
    ("CosineAnnealingLR", {"T_max": 7, "eta_min": 0.01}),
    ("LambdaLR", {"lr_lambda": lambda step: 1 / (1 + step)}),
    ("LinearLR", {"start_factor": 0.1, "total_iters": 4}),
    ("ConstantLR", {"factor": 0.1, "total_iters": 4}),
    ("PolynomialLR", {"total_iters": 7, "power": 2.0}),
    ("MultiplicativeLR", {"lr_lambda": lambda step: 1 - step / 100}),
    ("CosineAnnealingWarmRestarts", {"T_0": 3, "T_mult": 2, "eta_min": 0.01}),
]
CYCLES = [
    ("OneCycleLR", {"max_lr": 0.5, "total_steps": 20}),
    ("OneCycleLR", {"max_lr": [0.5, 0.4], "epochs": 5, "steps_per_epoch": 5}),
    ("OneCycleLR", {"max_lr": 0.5, "total_steps": 25, "anneal_strategy": "linear"}),
    ("OneCycleLR", {"max_lr": 0.5, "total_steps": 25, "three_phase": True}),
    ("CyclicLR", {"base_lr": 0.1, "max_lr": 0.5, "step_size_up": 3}),
    (
        "CyclicLR",
        {
            "base_lr": 0.1,
            "max_lr": [0.5, 0.6],
            "step_size_up": 3,
            "step_size_down": 4,
            "mode": "triangular2",
        },
    ),
    (
        "CyclicLR",
        {
            "base_lr": 0.1,
            "max_lr": 0.5,
            "step_size_up": 3,
            "mode": "exp_range",
            "gamma": 0.9,
        },
    ),
]
PLATEAUS = [
    {"patience": 1},
    {"mode": "max", "factor": 0.5, "patience": 0, "threshold_mode": "abs"},
    {"cooldown": 2, "patience": 0, "min_lr": 1e-4},
]


class Bowl:
    """Two parameters and a loss of them, in one of the worlds."""

    def __init__(self, lib, name, options):
        random = np.random.default_rng(0)
        self.parameters = [
            lib.tensor(random.normal(size=shape), requires_grad=True)
            for shape in ((3, 2), (2,))
        ]
        first, second = self.parameters
        groups = [{"params": [first]}, {"params": [second], "lr": 0.05}]
        self.optimizer = getattr(lib.optim, name)(groups, **options)

    def loss(self):
        weight, bias = self.parameters
        return ((weight * weight).sum(0) + bias).sin().sum()

    def step(self):
        self.optimizer.zero_grad()
        self.loss().backward()
        self.optimizer.step()

    def values(self):
        return [one.detach().numpy().copy() for one in self.parameters]


def assert_same(ours, theirs):
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, other, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS)
def test_steps_are_the_same(name, options):
    ours, theirs = Bowl(gv, name, options), Bowl(torch, name, options)

    for _ in range(NUM_STEPS):
        ours.step()
        theirs.step()
        assert_same(ours.values(), theirs.values())


@pytest.mark.parametrize(("name", "options"), LESS_EXACT)
def test_steps_are_the_same_as_far_as_pytorch_is_exact(name, options):
    ours, theirs = Bowl(gv, name, options), Bowl(torch, name, options)

    for _ in range(NUM_STEPS):
        ours.step()
        theirs.step()

    for mine, other in zip(ours.values(), theirs.values(), strict=True):
        np.testing.assert_allclose(mine, other, rtol=0, atol=1e-7)


@pytest.mark.parametrize("options", SEARCHES, ids=str)
def test_searches_go_the_same_way(options):
    ways = []
    for lib in (gv, torch):
        random = np.random.default_rng(0)
        x = lib.tensor(random.normal(size=(3, 2)), requires_grad=True)
        optimizer = lib.optim.LBFGS([x], **options)
        way = []

        def closure(x=x, optimizer=optimizer, way=way):
            optimizer.zero_grad()
            loss = ((x * x).sum(0)).sin().sum() + (x**4).sum() + x.sum()
            loss.backward()
            way.append(loss.item())
            return loss

        for _ in range(4):
            optimizer.step(closure)
        ways.append(way)

    np.testing.assert_allclose(ways[0], ways[1], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("name", "options"), CYCLES, ids=str)
@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
def test_cycles_of_rates_and_momentum_are_the_same(name, options, optimizer):
    given = {"lr": 0.001, "momentum": 0.5} if optimizer == "SGD" else {"lr": 0.001}
    found = []
    for lib in (gv, torch):
        bowl = Bowl(lib, optimizer, given)
        scheduler = getattr(lib.optim.lr_scheduler, name)(bowl.optimizer, **options)
        found.append([])
        for _ in range(NUM_STEPS):
            for group in bowl.optimizer.param_groups:
                momentum = group.get("momentum", group.get("betas", [0])[0])
                found[-1].append((group["lr"], momentum))
            bowl.step()
            scheduler.step()

    np.testing.assert_allclose(found[0], found[1], rtol=1e-12)


@pytest.mark.parametrize(("name", "options"), SCHEDULERS)
def test_rates_are_the_same(name, options):
    worlds = [(lib, Bowl(lib, "SGD", {"lr": 0.001})) for lib in (gv, torch)]
    rates = []
    for lib, bowl in worlds:
        scheduler = getattr(lib.optim.lr_scheduler, name)(bowl.optimizer, **options)
        rates.append([])
        for _ in range(NUM_STEPS):
            rates[-1].append([group["lr"] for group in bowl.optimizer.param_groups])
            bowl.step()
            scheduler.step()

    np.testing.assert_allclose(rates[0], rates[1], rtol=1e-12)


@pytest.mark.parametrize("options", PLATEAUS, ids=str)
def test_rates_fall_on_the_same_plateaus(options):
    measures = np.random.default_rng(0).normal(size=30).cumsum()
    rates = []
    for lib in (gv, torch):
        optimizer = Bowl(lib, "SGD", {"lr": 0.1}).optimizer
        scheduler = lib.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **options)
        rates.append([])
        for measure in measures:
            scheduler.step(measure)
            rates[-1].append([group["lr"] for group in optimizer.param_groups])

    np.testing.assert_allclose(rates[0], rates[1], rtol=1e-12)
    assert rates[0][-1] != rates[0][0]


@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"])
@pytest.mark.parametrize(
    "arguments",
    [
        ([], {}),
        (3, {}),
        ([3], {}),
        (["x"], {"lr": 1}),
        ("leaf", {"lr": -1}),
        ("leaf", {"weight_decay": -1}),
        ("made", {"lr": 1}),
        ("twice", {"lr": 1}),
        ("set", {"lr": 1}),
    ],
    ids=str,
)
def test_invalid_arguments_are_refused_in_pytorchs_words(optimizer, arguments):
    what, options = arguments
    endings = []
    for lib in (gv, torch):
        x = lib.tensor([1.0], requires_grad=True)
        params = {
            "leaf": [x],
            "made": [x * 2],
            "twice": [{"params": [x]}, {"params": [x]}],
            "set": [{"params": {x}}],
        }.get(what if isinstance(what, str) else "", what)
        with pytest.raises((ValueError, TypeError)) as error:
            getattr(lib.optim, optimizer)(params, **options)
        endings.append((error.type, str(error.value)))

    assert endings[0] == endings[1]


def test_a_state_of_pytorch_goes_on_here():
    ours, theirs = Bowl(gv, "Adam", {}), Bowl(torch, "Adam", {})
    for _ in range(3):
        theirs.step()
    saved = theirs.optimizer.state_dict()
    saved["state"] = {
        number: {name: gv.tensor(value.numpy()) for name, value in kept.items()}
        for number, kept in saved["state"].items()
    }
    with gv.no_grad():
        for mine, value in zip(ours.parameters, theirs.values(), strict=True):
            mine.copy_(gv.tensor(value))

    ours.optimizer.load_state_dict(saved)
    ours.step()
    theirs.step()

    assert_same(ours.values(), theirs.values())
