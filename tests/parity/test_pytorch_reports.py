"""Reports as users of PyTorch write them: from the program to the answer.

Each is a small program that knows nothing of gradviz. It is recorded as ``gradviz run``
does, and one more command answers, or the message of the run itself.
"""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from gradviz.capture.recording_options import RecordingOptions
from gradviz.capture.session import record_program
from gradviz.cli.main import gradviz
from gradviz.cli.run.failure import causes

torch = pytest.importorskip("torch")

pytestmark = [pytest.mark.parity, pytest.mark.usefixtures("no_other_thread")]


class Report(NamedTuple):
    """A program, the command that answers, and what the answer says.

    Attributes:
        program: The program.
        command: The arguments of the command, where TRACE stands for the trace; empty
            if the message of the run answers.
        answers: Parts of the answer, its spaces made single ones.
        checks_finite: Whether it is recorded with ``--check-finite``.
    """

    program: str
    command: str
    answers: tuple[str, ...]
    checks_finite: bool = False


REPORTS = {
    "grad is None after .data": Report(
        """
import torch
import torch.nn as nn
import torch.nn.functional as F

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3)
        self.fc1 = nn.Linear(144, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = x.data
        x = x.view(x.size(0), -1)
        return self.fc1(x)

net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for i in range(2):
    optimizer.zero_grad()
    out = net(torch.randn(8, 1, 8, 8))
    loss = nn.CrossEntropyLoss()(out, torch.randint(0, 10, (8,)))
    loss.backward()
    optimizer.step()
""",
        "check TRACE",
        (
            "Net.conv1.weight: the pass did not go through what Net.conv1 returned",
            "gradients ended at .data (report.py:14)",
        ),
        checks_finite=True,
    ),
    "indices of argmax have no gradient": Report(
        """
import torch
import torch.nn as nn

class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor = nn.Linear(4, 2)
        self.emb = nn.Embedding(5, 8)

    def forward(self, x):
        choice = self.actor(x).argmax(dim=1)
        return self.emb(choice)

policy = Policy()
policy(torch.randn(6, 4)).mean().backward()
print(policy.actor.weight.grad)
""",
        "show parameters TRACE",
        ("Policy.emb was given only integers at report.py:13",),
    ),
    "encoder under no_grad": Report(
        """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
        self.decoder = nn.Linear(8, 4)

    def forward(self, x):
        with torch.no_grad():
            z = self.encoder(x)
        return self.decoder(z)

model = Model()
model(torch.rand(2, 4)).pow(2).mean().backward()
print(model.encoder[0].weight.grad)
""",
        "show parameters TRACE",
        ("Model.encoder ran under no_grad, called at report.py:13",),
    ),
    "hidden state of a recurrent network": Report(
        """
import torch
import torch.nn as nn

rnn, fc = nn.RNNCell(3, 5), nn.Linear(5, 1)
h = torch.zeros(2, 5)
for t in range(3):
    h = rnn(torch.randn(2, 3), h)
    fc(h).pow(2).mean().backward()
""",
        "",
        (
            "called at report.py:9, ran #12 TanhBackward0",
            "without retain_graph",
            "carried the graph over",
            "detach() that result",
        ),
    ),
    "ReLU in place after a sigmoid": Report(
        """
import torch
import torch.nn as nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.act = nn.ReLU(inplace=True)

    def forward(self, x):
        x = torch.sigmoid(self.fc(x))
        y = self.act(x)
        return y + x

Block()(torch.randn(3, 4)).sum().backward()
""",
        "",
        ("ReluBackward0, made at report.py:13 later,",),
    ),
    "memory grows by a list of losses": Report(
        """
import torch
import torch.nn as nn

def train():
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters())
    losses = []
    for epoch in range(8):
        loss = model(torch.randn(16, 32)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)

train()
""",
        "check TRACE --advice",
        ("report.py:10:", "stay alive, held by variable loss", "detach() or item()"),
    ),
    "NaN of the square root of 0": Report(
        """
import torch
import torch.nn as nn

net = nn.Linear(3, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(2):
    out = net(torch.randn(5, 3))
    distance = ((out - out) ** 2).sum(1).sqrt()
    loss = out.pow(2).mean() + distance.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
        "check TRACE",
        (
            "step 0: infinity in the gradient of input 0 of SqrtBackward0",
            "report.py:10",
        ),
        checks_finite=True,
    ),
    "NaN of a logarithm": Report(
        """
import torch

logits = torch.zeros(3, requires_grad=True)
p = torch.relu(logits)
loss = -(p * torch.log(p)).sum()
loss.backward()
""",
        "check TRACE",
        ("infinity in the result of log at report.py:6",),
        checks_finite=True,
    ),
    "parameters that DDP says did not receive grad": Report(
        """
import tempfile
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.used = nn.Linear(4, 4)
        self.left = nn.Linear(4, 4)

    def forward(self, x):
        return self.used(x)

with tempfile.TemporaryDirectory() as folder:
    dist.init_process_group("gloo", f"file://{folder}/store", rank=0, world_size=1)
    try:
        model = DistributedDataParallel(Net())
        for i in range(2):
            model(torch.randn(2, 4)).sum().backward()
    finally:
        dist.destroy_process_group()
""",
        "check TRACE",
        ("module.left.weight:", "module.left was not called since the pass before"),
    ),
    "a hook changes the gradient": Report(
        """
import torch
import torch.nn as nn

model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))

def mute(grad):
    return grad * 0

model[0].weight.register_hook(mute)
model(torch.randn(8, 4)).pow(2).mean().backward()
print(model[0].weight.grad)
""",
        "explain TRACE 0.weight",
        ("mute (report.py:7, registered at report.py:10)",),
    ),
    "each step takes longer with retain_graph": Report(
        """
import torch
import torch.nn as nn

rnn = nn.GRUCell(4, 8)
h = torch.zeros(2, 8)
for t in range(8):
    h = rnn(torch.randn(2, 4), h)
    h.mean().backward(retain_graph=True)
""",
        "check TRACE --advice",
        ("report.py:9: each pass runs again what passes before it ran",),
    ),
    "a new head that the optimizer does not know": Report(
        """
import torch
import torch.nn as nn

model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model[2] = nn.Linear(8, 2)
for i in range(2):
    optimizer.zero_grad()
    model(torch.randn(6, 4)).pow(2).mean().backward()
    optimizer.step()
""",
        "show parameters TRACE",
        ("it has one, and no optimizer holds it", "SGD: (3, 8)"),
    ),
    "a backbone that is frozen": Report(
        """
import torch
import torch.nn as nn

backbone = nn.Linear(4, 8)
for p in backbone.parameters():
    p.requires_grad = False
model = nn.Sequential(backbone, nn.Linear(8, 2))
model(torch.randn(3, 4)).sum().backward()
""",
        "show parameters TRACE",
        ("it was frozen: requires_grad was False",),
    ),
    "a loss that does not require grad": Report(
        """
import torch
import torch.nn as nn

model = nn.Linear(4, 2)
prediction = model(torch.randn(3, 4)).argmax(1).float()
loss = (prediction - 1).pow(2).mean()
loss.backward()
""",
        "",
        ("What Linear returned required a gradient", "integers"),
    ),
    "a part that is compiled": Report(
        """
import torch
import torch.nn as nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.compile(nn.Linear(4, 4), backend="eager")
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        return self.head(self.body(x).detach())

net = Net()
net(torch.randn(2, 4)).sum().backward()
""",
        "show parameters TRACE",
        ("Net.body is compiled, and calls inside it are not recorded",),
    ),
    "a reentrant checkpoint of an input without a gradient": Report(
        """
import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        x = checkpoint(self.block, x, use_reentrant=True)
        return self.head(x)

net = Net()
net(torch.randn(2, 4)).sum().backward()
""",
        "explain TRACE block.0.weight",
        ("Net.block ran under no_grad, called at report.py:13", "use_reentrant=True"),
    ),
}


@pytest.fixture(params=REPORTS)
def report(request: pytest.FixtureRequest) -> Iterator[Report]:
    yield REPORTS[request.param]
    torch.compiler.reset()


@pytest.mark.filterwarnings("ignore")
def test_a_report_is_answered_by_one_command_after_the_run(
    report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    script = Path("report.py")
    script.write_text(report.program)
    main = ModuleType("__main__")
    options = RecordingOptions(check_finite="1" if report.checks_finite else "")
    recording = record_program("report.gvt", options)
    try:
        with contextlib.redirect_stdout(None):
            exec(compile(report.program, str(script.absolute()), "exec"), vars(main))
    except Exception as error:  # noqa: BLE001 - the program's own
        recording.error_left(error)
    finally:
        recording.close()

    if report.command:
        command = [one.replace("TRACE", "report.gvt") for one in report.command.split()]
        answer = CliRunner(env={"COLUMNS": "400"}).invoke(gradviz, command).output
    else:
        answer = " ".join(causes(recording))

    # Models and optimizers of one process are numbered.
    answer = re.sub(r"(?<=\w)#\d+", "", " ".join(answer.split()))
    for expected in report.answers:
        assert expected in answer
