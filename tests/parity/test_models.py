"""Models with PyTorch's weights give PyTorch's results, losses and gradients."""

import numpy as np
import pytest

import gradviz as gv

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

#: PyTorch computes these with a constant of float32.
COARSE = ("Hardsigmoid",)
RANDOM = np.random.default_rng(0)


def normal(*shape):
    return RANDOM.normal(size=shape)


def integers(high, *shape):
    return RANDOM.integers(0, high, shape)


class Mlp:
    inputs = (normal(8, 6),)

    @staticmethod
    def make(nn):
        return nn.Sequential(
            nn.Linear(6, 16),
            nn.Tanh(),
            nn.LayerNorm(16),
            nn.Linear(16, 16, bias=False),
            nn.GELU(),
            nn.Linear(16, 3),
        )


class Cnn:
    inputs = (normal(4, 2, 9, 8),)

    @staticmethod
    def make(nn):
        return nn.Sequential(
            nn.Conv2d(2, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 8, 3, stride=2, padding=2, dilation=2, groups=4),
            nn.GroupNorm(2, 8),
            nn.SiLU(),
            nn.AvgPool2d(2),
            nn.Flatten(),
            nn.Linear(8, 5),
            nn.BatchNorm1d(5),
        )


class Residual:
    inputs = (normal(2, 3, 7, 7),)

    @staticmethod
    def make(nn):
        class Block(nn.Module):
            def __init__(self, channels):
                super().__init__()
                self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
                self.bn1 = nn.BatchNorm2d(channels)
                self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
                self.bn2 = nn.BatchNorm2d(channels)

            def forward(self, x):
                y = self.bn1(self.conv1(x)).relu()
                return (self.bn2(self.conv2(y)) + x).relu()

        return nn.Sequential(
            nn.Conv2d(3, 6, 3, stride=2),
            Block(6),
            Block(6),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(6, 4),
        )


class Upsampling:
    inputs = (normal(2, 4, 5),)

    @staticmethod
    def make(nn):
        return nn.Sequential(
            nn.Conv1d(4, 6, 3, padding="same", padding_mode="circular"),
            nn.ELU(),
            nn.ConvTranspose1d(6, 3, 4, stride=2, padding=1, output_padding=1),
            nn.PReLU(),
            nn.MaxPool1d(3, stride=1),
        )


def recurrent(kind, **options):
    class Recurrent:
        inputs = (normal(5, 3, 4),)

        @staticmethod
        def make(nn):
            return getattr(nn, kind)(4, 6, **options)

    return Recurrent


def packed(kind, **options):
    """A recurrent layer over sequences of different lengths."""

    class Packed:
        inputs = (normal(5, 3, 4),)

        @staticmethod
        def make(nn):
            rnn = nn.utils.rnn

            class Model(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.layer = getattr(nn, kind)(4, 6, **options)

                def forward(self, x):
                    sequence = rnn.pack_padded_sequence(
                        x, [2, 5, 3], enforce_sorted=False
                    )
                    output, last = self.layer(sequence)
                    padded, _ = rnn.pad_packed_sequence(output)
                    return padded, last

            return Model()

    return Packed


class Bags:
    inputs = (normal(7),)

    @staticmethod
    def make(nn):
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.sums = nn.EmbeddingBag(5, 4, mode="sum", padding_idx=1)
                self.means = nn.EmbeddingBag(5, 3, norm_type=1.0)
                self.largest = nn.EmbeddingBag(5, 3, mode="max")

            def forward(self, weights):
                lib = gv if isinstance(weights, gv.Tensor) else torch
                entries = lib.tensor([0, 3, 1, 1, 4, 3, 2])
                starts = lib.tensor([0, 3, 3])
                return (
                    self.sums(entries, starts, weights),
                    self.means(entries, starts),
                    self.largest(entries, starts),
                )

        return Model()


class ByOneself:
    """Attention with keys that are learned, and one that is 0."""

    inputs = (normal(4, 2, 6),)

    @staticmethod
    def make(nn):
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.attention = nn.MultiheadAttention(
                    6, 2, add_bias_kv=True, add_zero_attn=True
                )

            def forward(self, x):
                return self.attention(x, x, x, attn_mask=x[:, 0, :4] > 0)

        return Model()


class Cells:
    inputs = (normal(5, 3, 4),)

    @staticmethod
    def make(nn):
        class Loop(nn.Module):
            def __init__(self):
                super().__init__()
                self.lstm = nn.LSTMCell(4, 6)
                self.gru = nn.GRUCell(6, 5)
                self.rnn = nn.RNNCell(5, 5, nonlinearity="relu")

            def forward(self, x):
                state = hidden = None
                outputs = []
                for one in x:
                    state = self.lstm(one, state)
                    hidden = self.gru(state[0], hidden)
                    outputs.append(self.rnn(hidden))
                return tuple(outputs)

        return Loop()


def encoder(**options):
    class Encoder:
        inputs = (normal(2, 5, 8),)

        @staticmethod
        def make(nn):
            layer = nn.TransformerEncoderLayer(
                8, 2, 16, dropout=0.0, batch_first=True, **options
            )
            return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    return Encoder


class Decoder:
    inputs = (normal(5, 2, 8), normal(4, 2, 8))

    @staticmethod
    def make(nn):
        layer = nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0)
        return nn.TransformerDecoder(layer, 2, nn.LayerNorm(8))


class Whole:
    inputs = (normal(2, 5, 8), normal(2, 4, 8))

    @staticmethod
    def make(nn):
        class Masked(nn.Module):
            def __init__(self):
                super().__init__()
                self.net = nn.Transformer(8, 2, 1, 2, 16, dropout=0.0, batch_first=True)

            def forward(self, src, tgt):
                mask = self.net.generate_square_subsequent_mask(tgt.shape[1])
                return self.net(src, tgt, tgt_mask=mask.to(src.dtype))

        return Masked()


class Attention:
    inputs = (normal(5, 2, 8), normal(4, 2, 6), normal(4, 2, 7))

    @staticmethod
    def make(nn):
        return nn.MultiheadAttention(8, 4, kdim=6, vdim=7)


class LanguageModel:
    inputs = (integers(11, 3, 6),)

    @staticmethod
    def make(nn):
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.embed = nn.Embedding(11, 8, padding_idx=2)
                self.lstm = nn.LSTM(8, 8, num_layers=2, batch_first=True)
                self.head = nn.Linear(8, 11)
                self.head.weight = self.embed.weight  # tied

            def forward(self, text):
                hidden, _ = self.lstm(self.embed(text))
                return self.head(hidden)

        return Model()


MODELS = {
    "MLP": Mlp,
    "CNN": Cnn,
    "residual CNN": Residual,
    "upsampling": Upsampling,
    "RNN": recurrent("RNN", nonlinearity="relu", bias=False),
    "LSTM": recurrent("LSTM", num_layers=2, bidirectional=True),
    "GRU": recurrent("GRU", num_layers=2, bidirectional=True, batch_first=True),
    "LSTM, projected": recurrent("LSTM", num_layers=2, proj_size=2),
    "RNN, packed": packed("RNN"),
    "LSTM, packed": packed("LSTM", num_layers=2, bidirectional=True, proj_size=3),
    "GRU, packed": packed("GRU", bidirectional=True, bias=False),
    "bags of embeddings": Bags,
    "attention by oneself": ByOneself,
    "cells": Cells,
    "encoder": encoder(),
    "encoder, norm first": encoder(norm_first=True, activation="gelu", bias=False),
    "decoder": Decoder,
    "transformer": Whole,
    "attention": Attention,
    "language model": LanguageModel,
}


@pytest.fixture(params=MODELS)
def pair(request):
    """The same model in both worlds, with PyTorch's weights, and its inputs."""
    design = MODELS[request.param]
    torch.manual_seed(0)
    theirs = design.make(torch.nn).double()
    ours = design.make(gv.nn).double()
    weights = {key: gv.tensor(one.numpy()) for key, one in theirs.state_dict().items()}
    ours.load_state_dict(weights)
    return ours, theirs, design.inputs


def run(lib, model, inputs):
    """Results, loss, and the gradients of inputs and parameters, as arrays."""
    tensors = [lib.tensor(one) for one in inputs]
    floats = [one.requires_grad_() for one in tensors if one.is_floating_point()]
    results = _flat(model(*tensors))
    loss = sum(((one * one).sin().sum() for one in results), start=0.0)
    loss.backward()
    leaves = floats + list(model.parameters())
    return [one.detach().numpy() for one in (*results, loss)] + [
        one.grad.numpy() for one in leaves
    ]


def _flat(result):
    if isinstance(result, (tuple, list)):
        return [leaf for one in result for leaf in _flat(one)]
    return [] if result is None else [result]


def assert_same(ours, theirs, tolerance=1e-10):
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, other, rtol=tolerance, atol=tolerance)


def test_names_and_shapes_of_the_state_are_the_same(pair):
    ours, theirs, _ = pair

    assert [(key, tuple(one.shape)) for key, one in ours.state_dict().items()] == [
        (key, tuple(one.shape)) for key, one in theirs.state_dict().items()
    ]


def test_results_and_gradients_are_the_same(pair):
    ours, theirs, inputs = pair

    assert_same(run(gv, ours, inputs), run(torch, theirs, inputs))


def test_evaluation_is_the_same_after_training_steps(pair):
    ours, theirs, inputs = pair
    for _ in range(2):
        run(gv, ours, inputs)
        run(torch, theirs, inputs)

    assert_same(run(gv, ours.eval(), inputs), run(torch, theirs.eval(), inputs))
    assert_same(
        [one.numpy() for one in ours.buffers()],
        [one.numpy() for one in theirs.buffers()],
    )


def test_models_print_the_same(pair):
    ours, theirs, _ = pair

    # PyTorch has a linear layer of its own inside attention.
    assert repr(ours) == repr(theirs)


# --- single layers ------------------------------------------------------------------

VOLUME, IMAGE, SEQUENCE, ROWS = (2, 2, 4, 5, 6), (2, 4, 6, 7), (2, 4, 9), (5, 6)
LAYERS = [
    *((name, {}, ROWS) for name in ("ReLU", "ReLU6", "Sigmoid", "Hardsigmoid", "Tanh")),
    *((name, {}, ROWS) for name in ("SiLU", "Mish", "Hardswish", "SELU", "Softsign")),
    *((name, {}, ROWS) for name in ("LogSigmoid", "Tanhshrink", "GLU", "Identity")),
    ("ReLU", {"inplace": False}, ROWS),
    ("Threshold", {"threshold": 0.1, "value": 20.0}, ROWS),
    ("RReLU", {}, ROWS),
    ("Hardtanh", {"min_val": -0.5, "max_val": 0.3}, ROWS),
    ("ELU", {"alpha": 0.7}, ROWS),
    ("CELU", {"alpha": 0.5}, ROWS),
    ("GELU", {"approximate": "tanh"}, ROWS),
    ("Hardshrink", {}, ROWS),
    ("Softshrink", {"lambd": 0.2}, ROWS),
    ("LeakyReLU", {}, ROWS),
    ("Softplus", {"beta": 2.0}, ROWS),
    ("PReLU", {"num_parameters": 6}, ROWS),
    ("Softmin", {"dim": 1}, ROWS),
    ("Softmax", {"dim": 0}, ROWS),
    ("LogSoftmax", {"dim": -1}, ROWS),
    ("Softmax2d", {}, IMAGE),
    ("Flatten", {"end_dim": 2}, IMAGE),
    ("Unflatten", {"dim": 1, "unflattened_size": (2, 3)}, ROWS),
    ("Linear", {"in_features": 6, "out_features": 3, "bias": False}, ROWS),
    ("Dropout", {"p": 0.0}, ROWS),
    ("MaxPool1d", {"kernel_size": 3, "stride": 2, "padding": 1}, SEQUENCE),
    ("MaxPool2d", {"kernel_size": (2, 3), "ceil_mode": True}, IMAGE),
    ("MaxPool2d", {"kernel_size": 2, "return_indices": True}, IMAGE),
    ("AvgPool1d", {"kernel_size": 3}, SEQUENCE),
    ("AvgPool2d", {"kernel_size": 3, "padding": 1, "divisor_override": 5}, IMAGE),
    ("AdaptiveAvgPool1d", {"output_size": 4}, SEQUENCE),
    ("AdaptiveAvgPool2d", {"output_size": (2, None)}, IMAGE),
    ("AdaptiveMaxPool2d", {"output_size": 3}, IMAGE),
    ("MaxPool3d", {"kernel_size": 2}, VOLUME),
    ("AvgPool3d", {"kernel_size": 2, "stride": 1}, VOLUME),
    ("AdaptiveAvgPool3d", {"output_size": 2}, VOLUME),
    ("BatchNorm3d", {"num_features": 2}, VOLUME),
    ("Conv3d", {"in_channels": 2, "out_channels": 3, "kernel_size": 2}, VOLUME),
    ("InstanceNorm1d", {"num_features": 4}, SEQUENCE),
    ("InstanceNorm3d", {"num_features": 2, "affine": True, "bias": False}, VOLUME),
    ("BatchNorm3d", {"num_features": 2, "bias": False}, VOLUME),
    ("GroupNorm", {"num_groups": 2, "num_channels": 4, "bias": False}, IMAGE),
    ("AdaptiveMaxPool3d", {"output_size": 2}, VOLUME),
    ("AdaptiveMaxPool1d", {"output_size": 3, "return_indices": True}, SEQUENCE),
    ("LPPool1d", {"norm_type": 3, "kernel_size": 2}, SEQUENCE),
    ("LPPool2d", {"norm_type": 2, "kernel_size": 3, "stride": 2}, IMAGE),
    ("LPPool3d", {"norm_type": 1, "kernel_size": 2, "ceil_mode": True}, VOLUME),
    ("ReflectionPad3d", {"padding": 1}, VOLUME),
    ("ReplicationPad3d", {"padding": (1, 0, 2, 1, 0, 1)}, VOLUME),
    ("CircularPad3d", {"padding": 1}, VOLUME),
    ("FeatureAlphaDropout", {"p": 0.0}, IMAGE),
    ("ChannelShuffle", {"groups": 2}, IMAGE),
    ("UpsamplingNearest2d", {"scale_factor": 2}, IMAGE),
    ("UpsamplingBilinear2d", {"size": (5, 9)}, IMAGE),
    ("Fold", {"output_size": (3, 4), "kernel_size": 2}, (2, 8, 6)),
    (
        "InstanceNorm2d",
        {"num_features": 4, "affine": True, "track_running_stats": True},
        IMAGE,
    ),
    ("LocalResponseNorm", {"size": 2}, IMAGE),
    ("ConstantPad1d", {"padding": (1, 2), "value": 3.5}, SEQUENCE),
    ("ZeroPad2d", {"padding": (1, 0, -1, 2)}, IMAGE),
    ("ReflectionPad2d", {"padding": 2}, IMAGE),
    ("ReplicationPad1d", {"padding": (0, 2)}, SEQUENCE),
    ("CircularPad2d", {"padding": 1}, IMAGE),
    ("Upsample", {"scale_factor": 2}, IMAGE),
    ("Upsample", {"size": (9, 4), "mode": "bilinear"}, IMAGE),
    ("PixelShuffle", {"upscale_factor": 2}, IMAGE),
    ("PixelUnshuffle", {"downscale_factor": 2}, (2, 3, 6, 8)),
    ("Unfold", {"kernel_size": (2, 3), "padding": 1}, IMAGE),
    ("LayerNorm", {"normalized_shape": (6, 7), "bias": False}, IMAGE),
    ("LayerNorm", {"normalized_shape": 7, "elementwise_affine": False}, IMAGE),
    ("RMSNorm", {"normalized_shape": [7]}, IMAGE),
    ("GroupNorm", {"num_groups": 2, "num_channels": 4}, IMAGE),
    ("BatchNorm1d", {"num_features": 4, "momentum": None}, SEQUENCE),
    ("BatchNorm2d", {"num_features": 4, "track_running_stats": False}, IMAGE),
    ("BatchNorm2d", {"num_features": 4, "affine": False}, IMAGE),
    ("Conv1d", {"in_channels": 4, "out_channels": 2, "kernel_size": 3}, SEQUENCE),
    (
        "Conv2d",
        {
            "in_channels": 4,
            "out_channels": 2,
            "kernel_size": (3, 2),
            "padding": (1, 2),
            "padding_mode": "reflect",
            "groups": 2,
        },
        IMAGE,
    ),
    (
        "ConvTranspose2d",
        {"in_channels": 4, "out_channels": 2, "kernel_size": 3, "dilation": 2},
        IMAGE,
    ),
]


@pytest.mark.parametrize(("name", "options", "shape"), LAYERS, ids=str)
@pytest.mark.parametrize("mode", [True, False], ids=["training", "evaluating"])
def test_layers_are_the_same(name, options, shape, mode):
    x = np.random.default_rng(1).normal(size=shape)
    theirs = getattr(torch.nn, name)(**options).double().train(mode)
    ours = getattr(gv.nn, name)(**options).double().train(mode)
    state = {key: gv.tensor(one.numpy()) for key, one in theirs.state_dict().items()}
    ours.load_state_dict(state)

    assert repr(ours) == repr(theirs)
    if name != "RReLU" or not mode:  # which is random in training
        tolerance = 1e-7 if name in COARSE else 1e-10
        assert_same(run(gv, ours, [x]), run(torch, theirs, [x]), tolerance)
    assert_same(
        [one.numpy() for one in ours.buffers()],
        [one.numpy() for one in theirs.buffers()],
    )


PROBABILITIES = 1 / (1 + np.exp(-normal(5, 4)))
LOSSES = [
    ("L1Loss", {}, normal(5, 4), normal(5, 4)),
    ("MSELoss", {"reduction": "sum"}, normal(5, 4), normal(5, 4)),
    ("SmoothL1Loss", {"beta": 0.5}, normal(5, 4), normal(5, 4)),
    ("HuberLoss", {"delta": 0.5}, normal(5, 4), normal(5, 4)),
    ("NLLLoss", {"ignore_index": 1}, np.log(PROBABILITIES), integers(4, 5)),
    ("CrossEntropyLoss", {"label_smoothing": 0.1}, normal(5, 4), integers(4, 5)),
    ("CrossEntropyLoss", {"weight": normal(4) ** 2}, normal(5, 4), integers(4, 5)),
    ("CrossEntropyLoss", {}, normal(5, 4), PROBABILITIES),
    ("BCELoss", {"reduction": "none"}, PROBABILITIES, PROBABILITIES[::-1].copy()),
    ("BCEWithLogitsLoss", {"pos_weight": normal(4) ** 2}, normal(5, 4), PROBABILITIES),
    ("KLDivLoss", {"reduction": "batchmean"}, np.log(PROBABILITIES), PROBABILITIES),
    ("KLDivLoss", {"log_target": True, "reduction": "sum"}, normal(3), normal(3)),
    ("PoissonNLLLoss", {"full": True}, normal(5, 4), integers(5, 5, 4) * 1.0),
    ("SoftMarginLoss", {}, normal(5, 4), integers(2, 5, 4) * 2.0 - 1),
    ("HingeEmbeddingLoss", {"margin": 0.5}, normal(5, 4), integers(2, 5, 4) * 2.0 - 1),
    ("MultiMarginLoss", {"p": 2}, normal(5, 4), integers(4, 5)),
    ("MultiLabelMarginLoss", {}, normal(5, 4), integers(4, 5, 4)),
    ("MultiLabelSoftMarginLoss", {}, normal(5, 4), integers(2, 5, 4) * 1.0),
]


@pytest.mark.parametrize(("name", "options", "x", "target"), LOSSES, ids=str)
def test_losses_are_the_same(name, options, x, target):
    results = []
    for lib in (gv, torch):
        arguments = {
            key: lib.tensor(one) if isinstance(one, np.ndarray) else one
            for key, one in options.items()
        }
        loss = getattr(lib.nn, name)(**arguments)
        leaf = lib.tensor(x, requires_grad=True)
        value = loss(leaf, lib.tensor(target))
        value.sum().backward()
        results.append([value.detach().numpy(), leaf.grad.numpy()])
        assert list(loss.state_dict()) == [
            key for key, one in options.items() if isinstance(one, np.ndarray)
        ]

    assert_same(*results)


SIGNS = integers(2, 5) * 2.0 - 1
LOSSES_OF_THREE = [
    ("GaussianNLLLoss", {"full": True}, (normal(5, 4), normal(5, 4), PROBABILITIES)),
    ("CosineEmbeddingLoss", {"margin": 0.1}, (normal(5, 4), normal(5, 4), SIGNS)),
    ("MarginRankingLoss", {"margin": 0.2}, (normal(5), normal(5), SIGNS)),
    ("TripletMarginLoss", {"swap": True}, (normal(5, 4), normal(5, 4), normal(5, 4))),
    ("CosineSimilarity", {"dim": 0}, (normal(5, 4), normal(5, 4))),
    ("PairwiseDistance", {"keepdim": True}, (normal(5, 4), normal(5, 4))),
    ("TripletMarginWithDistanceLoss", {"swap": True}, [normal(5, 4) for _ in range(3)]),
]


@pytest.mark.parametrize(("name", "options", "inputs"), LOSSES_OF_THREE, ids=str)
def test_losses_of_several_inputs_are_the_same(name, options, inputs):
    results = []
    for lib in (gv, torch):
        first, *others = (lib.tensor(one) for one in inputs)
        first.requires_grad_()
        value = getattr(lib.nn, name)(**options)(first, *others)
        value.sum().backward()
        results.append([value.detach().numpy(), first.grad.numpy()])

    assert_same(*results)


@pytest.mark.parametrize("options", [{}, {"batch_first": True, "padding_side": "left"}])
def test_sequences_are_padded_the_same(options):
    sequences = [normal(length, 2) for length in (3, 1, 2)]

    ours, theirs = (
        lib.nn.utils.rnn.pad_sequence(
            [lib.tensor(one) for one in sequences], padding_value=7.0, **options
        ).numpy()
        for lib in (gv, torch)
    )

    assert_same([ours], [theirs])


# --- errors -------------------------------------------------------------------------


def _assign(name, value):
    def act(lib, model):
        setattr(model, name, value(lib))

    return act


MISTAKES = {
    "a tensor for a parameter": _assign("weight", lambda lib: lib.ones(2)),
    "a number for a buffer": _assign("mean", lambda lib: 3),
    "a text for a module": _assign("inner", lambda lib: "x"),
    "an empty name": lambda lib, model: model.register_buffer("", None),
    "a dotted name": lambda lib, model: model.add_module("a.b", None),
    "a name of another type": lambda lib, model: model.register_parameter(3, None),
    "a name that is taken": lambda lib, model: model.register_buffer("forward", None),
    "an op's result": lambda lib, model: model.register_parameter(
        "x", lib.ones(2, requires_grad=True) * 2
    ),
    "no module": lambda lib, model: model.add_module("x", 3),
    "no attribute": lambda lib, model: model.nothing,
    "no submodule": lambda lib, model: model.get_submodule("inner.nothing"),
    "no parameter": lambda lib, model: model.get_parameter("mean"),
    "no state": lambda lib, model: model.load_state_dict(3),
    "missing keys": lambda lib, model: model.load_state_dict({"x": lib.ones(1)}),
    "another shape": lambda lib, model: model.load_state_dict(
        model.state_dict() | {"weight": lib.ones(3, 4)}
    ),
    "no tensor": lambda lib, model: model.load_state_dict(
        model.state_dict() | {"mean": "x"}
    ),
    "integers": lambda lib, model: model.to(lib.int64),
    "no mode": lambda lib, model: model.train(1),
    "no probability": lambda lib, model: lib.nn.Dropout(2.0),
    "channels": lambda lib, model: lib.nn.Conv2d(3, 4, 1, groups=2),
    "padding": lambda lib, model: lib.nn.Conv2d(3, 3, 1, stride=2, padding="same"),
    "groups of channels": lambda lib, model: lib.nn.GroupNorm(2, 3),
    "no heads": lambda lib, model: lib.nn.MultiheadAttention(5, 2),
    "a flat LSTM": lambda lib, model: lib.nn.LSTM(2, 2)(lib.ones(2)),
    "a wide GRU": lambda lib, model: lib.nn.GRU(2, 2)(lib.ones(2, 3)),
    "a state of another size": lambda lib, model: lib.nn.RNN(2, 3)(
        lib.ones(4, 5, 2), lib.ones(1, 5, 2)
    ),
    "images for sequences": lambda lib, model: lib.nn.BatchNorm1d(2)(
        lib.ones(1, 2, 3, 4)
    ),
    "no gradient": lambda lib, model: lib.nn.utils.clip_grad_norm_(
        [_with_nan(lib)], 1.0, error_if_nonfinite=True
    ),
}


def _with_nan(lib):
    x = lib.nn.Parameter(lib.ones(1))
    x.grad = lib.tensor([float("nan")])
    return x


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_told_in_the_same_words(mistake):
    endings = []
    for lib in (gv, torch):
        model = lib.nn.Module()
        model.register_parameter("weight", lib.nn.Parameter(lib.ones(2)))
        model.register_buffer("mean", lib.ones(2))
        model.add_module("inner", lib.nn.Linear(1, 1))
        with pytest.raises(Exception) as error:  # noqa: PT011 - compared below
            MISTAKES[mistake](lib, model)
        endings.append((error.type, str(error.value)))
    (ours, text), (theirs, expected) = endings

    expected = expected.replace("torch", "gradviz")
    assert (ours, text) == (theirs, expected)
