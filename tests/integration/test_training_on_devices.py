"""Training on a simulated device: the program only launches."""

import math
from functools import partial

import pytest

import gradviz as gv
from gradviz import nn
from gradviz.nn import functional as F  # noqa: N812 - as everyone calls it
from tests.backends.simulated.watched import watched

DEVICE = "sim:0"


class Tagger(nn.Module):
    """Embeddings, a recurrent layer, a score for each word."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(10, 4, padding_idx=0, max_norm=1.0)
        self.layers = nn.LSTM(4, 3, num_layers=2, bidirectional=True, dropout=0.1)
        self.scores = nn.Linear(6, 10)

    def forward(self, text):
        return self.scores(self.layers(self.words(text))[0]).transpose(1, 2)


class Transformer(nn.Module):
    """Words, their places, one layer of an encoder, scores."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(10, 8)
        self.places = nn.Embedding(5, 8)
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1)
        self.scores = nn.Linear(8, 10)

    def forward(self, text):
        length = text.shape[1]
        x = self.words(text) + self.places(gv.arange(length, device=text.device))
        mask = nn.Transformer.generate_square_subsequent_mask(length, text.device)
        x = self.encoder(x, mask=mask, src_key_padding_mask=text == 0)
        return self.scores(x).transpose(1, 2)


def network():
    """Convolutions for images."""
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Dropout(0.5),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(16, 10),
    )


IMAGES = (gv.randn(4, 3, 8, 8), gv.tensor([0, 9, 2, 1]))
TEXTS = (gv.tensor([[1, 2, 3, 0], [3, 4, 5, 6]]),) * 2


@pytest.mark.parametrize(
    ("make", "batch"),
    [(network, IMAGES), (Tagger, TEXTS), (Transformer, TEXTS)],
    ids=["images", "embeddings and LSTM", "transformer"],
)
def test_a_step_waits_for_nothing(make, batch):
    model = make().to(DEVICE)
    optimizer = gv.optim.AdamW(model.parameters(), lr=0.01)
    schedule = gv.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
    x, target = (one.to(DEVICE) for one in batch)

    with watched() as executor:
        for _ in range(2):
            optimizer.zero_grad()
            scores = model(x)
            loss = F.cross_entropy(scores, target, ignore_index=0, label_smoothing=0.1)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            right = (scores.argmax(1) == target).float().mean()
        assert executor.num_waits == 0
        assert math.isfinite(loss.item())
        assert executor.num_waits == 1
    assert right.device.type == "sim"


@pytest.mark.parametrize(
    "kind",
    [
        *("SGD", "ASGD", "Adadelta", "Adagrad", "Adam", "Adamax", "NAdam", "RAdam"),
        *("RMSprop", "Rprop"),
    ],
)
def test_no_optimizer_but_lbfgs_waits(kind):
    weight = gv.ones(3, device=DEVICE, requires_grad=True)
    optimizer = getattr(gv.optim, kind)([weight], lr=0.1)

    with watched() as executor:
        for _ in range(2):
            weight.square().sum().backward()
            optimizer.step()
        assert executor.num_waits == 0


def test_the_norm_of_gradients_is_where_they_are():
    weight = gv.ones(3, device=DEVICE, requires_grad=True)
    (weight * gv.tensor([0.0, 3.0, 4.0], device=DEVICE)).sum().backward()

    norm = nn.utils.clip_grad_norm_([weight], 1.0)

    assert str(norm.device) == DEVICE
    assert norm.item() == 5
    assert weight.grad.tolist() == pytest.approx([0, 0.6, 0.8], abs=1e-6)


frequent = partial(F.embedding, scale_grad_by_freq=True)


@pytest.mark.parametrize(
    "call",
    [
        lambda x, i: x.__setitem__(0, x[1].sum()),
        lambda x, i: x.__setitem__(x > 1, 0.0),
        lambda x, i: x.__setitem__((slice(None), i > 1), 0.0),
        lambda x, i: x.index_put_((x > 1,), gv.tensor(2.0, device=DEVICE)),
        lambda x, i: gv.cat([x, gv.empty(0, device=DEVICE)]),
        lambda x, i: x.abs().bernoulli_(0.5).bernoulli_(x.sigmoid()),
        lambda x, i: x.sigmoid().bernoulli(),
        lambda x, i: x.softmax(1).multinomial(1),
        lambda x, i: x.softmax(1).multinomial(9, replacement=True),
        lambda x, i: x.repeat_interleave(i, 0, output_size=6),
        lambda x, i: gv.arange(40.0, device=DEVICE).sort(descending=True),
        lambda x, i: x.histc(3, 0, 1),
        lambda x, i: F.embedding_bag(i, x, i[:2], mode="max", padding_idx=1),
        lambda x, i: frequent(i, x.requires_grad_()).sum().backward(),
    ],
)
def test_calls_that_need_no_elements_do_not_wait(call):
    x = gv.randn(4, 4, device=DEVICE)
    index = gv.tensor([0, 1, 2, 3], device=DEVICE)

    with watched() as executor:
        call(x, index)
        assert executor.num_waits == 0


@pytest.mark.parametrize(
    ("op", "call"),
    [
        ("gather", lambda x, i: x.gather(0, i[:, None])),
        ("index_select", lambda x, i: x.index_select(0, i)),
        ("take", lambda x, i: x.take(i * 9)),
        ("index_add", lambda x, i: x.index_add(0, i, x[:2])),
        ("index_copy", lambda x, i: x.index_copy(0, i, x[:2])),
        ("index_fill", lambda x, i: x.index_fill(0, i, 1.0)),
        ("put", lambda x, i: x.put(i * 9, x[0, :2])),
        ("scatter", lambda x, i: x.scatter(0, i[:, None], 1.0)),
        ("scatter", lambda x, i: x.scatter_add(0, i[:, None], x)),
        ("embedding", lambda x, i: F.embedding(i, x)),
        ("embedding_bag", lambda x, i: F.embedding_bag(i[None], x)),
        ("embedding_bag", lambda x, i: F.embedding_bag(i * 0, x, i)),
        ("one_hot", lambda x, i: F.one_hot(i, 3)),
        ("nll_loss", lambda x, i: F.nll_loss(x[:2], i)),
        ("nll_loss", lambda x, i: F.cross_entropy(x[:2], i)),
        ("multi_margin_loss", lambda x, i: F.multi_margin_loss(x[:2], i)),
        ("binary_cross_entropy", lambda x, i: F.binary_cross_entropy(x + 2, x)),
        ("bernoulli", lambda x, i: (x + 2).bernoulli()),
        ("multinomial", lambda x, i: (x - 2).multinomial(1)),
        ("quantile", lambda x, i: x.quantile(x[0] + 2)),
        ("div_floor_cpu", lambda x, i: i // (i * 0)),
        ("max_unpool", lambda x, i: F.max_unpool1d(x[:1], i[None], 1)),
        ("masked_scatter", lambda x, i: x.masked_scatter(x > -1, x[0])),
    ],
)
def test_wrong_elements_are_an_error_when_somebody_waits(op, call):
    x, wrong = gv.zeros(3, 2), gv.tensor([1, 5])
    with pytest.raises((RuntimeError, IndexError)) as at_once:
        call(x, wrong)
    x, wrong = x.to(DEVICE), wrong.to(DEVICE)

    with watched():
        call(x, wrong)
        with pytest.raises(
            RuntimeError, match=rf"kernel '{op}(: check)?' failed"
        ) as late:
            gv.synchronize(DEVICE)

    assert str(late.value.__cause__) == str(at_once.value)
    assert type(late.value.__cause__) is type(at_once.value)
