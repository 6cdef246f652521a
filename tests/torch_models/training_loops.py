"""Loops that train: those of Hugging Face and Lightning, a graph's, a game's."""

import tempfile
from typing import Any

import pytest

from tests.torch_models.language_models import gpt2
from tests.torch_models.programs import Program, Training

torch = pytest.importorskip("torch")

_NUM_STEPS = 3


def hugging_face() -> Training:
    from transformers import Trainer, TrainingArguments

    model = gpt2().model
    data = [{"input_ids": row, "labels": row} for row in torch.randint(1, 50, (6, 8))]

    def run() -> list[Any]:
        with tempfile.TemporaryDirectory() as folder:
            options = TrainingArguments(
                folder,
                max_steps=_NUM_STEPS,
                per_device_train_batch_size=2,
                logging_steps=1,
                save_strategy="no",
                report_to=[],
                use_cpu=True,
                disable_tqdm=True,
            )
            trainer = Trainer(model, options, train_dataset=data)
            trainer.train()
        return [torch.tensor(one["loss"]) for one in trainer.state.log_history[:-1]]

    return Training(model, run)


def lightning() -> Training:
    from lightning import LightningModule, Trainer

    class Digits(LightningModule):
        def __init__(self) -> None:
            super().__init__()
            layers = [torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Dropout(0.1)]
            self.body = torch.nn.Sequential(*layers)
            self.head = torch.nn.Linear(16, 3)
            self.losses: list[Any] = []

        def training_step(self, batch: Any, _: int) -> Any:
            x, y = batch
            loss = torch.nn.functional.cross_entropy(self.head(self.body(x)), y)
            self.losses.append(loss.detach().clone())
            return loss

        def configure_optimizers(self) -> Any:
            return torch.optim.Adam(self.parameters())

    model = Digits()
    data = torch.utils.data.TensorDataset(torch.randn(12, 8), torch.arange(12) % 3)

    def run() -> list[Any]:
        trainer = Trainer(
            max_steps=_NUM_STEPS,
            accelerator="cpu",
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        trainer.fit(model, torch.utils.data.DataLoader(data, 4))
        return model.losses

    return Training(model, run)


def _steps(model: Any, optimizer: Any, loss_of: Any) -> Training:
    def run() -> list[Any]:
        losses = []
        for step in range(_NUM_STEPS):
            optimizer.zero_grad()
            loss = loss_of(step)
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        return losses

    return Training(model, run)


def graph_attention() -> Training:
    """Learn the classes of a graph's nodes."""
    from torch_geometric.nn import GAT

    model = GAT(8, 16, num_layers=4, out_channels=3, heads=2)
    x, edges, classes = (
        torch.randn(20, 8),
        torch.randint(0, 20, (2, 60)),
        torch.arange(20),
    )

    def loss(_: int) -> Any:
        return torch.nn.functional.cross_entropy(model(x, edges), classes % 3)

    return _steps(model, torch.optim.Adam(model.parameters()), loss)


def policy_gradient() -> Training:
    """Learn to hold a pole upright, by REINFORCE: a step an episode."""
    import gymnasium

    nn = torch.nn
    policy = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))
    game = gymnasium.make("CartPole-v1")

    def loss(step: int) -> Any:
        state, _ = game.reset(seed=step)
        chances, rewards, is_over = [], [], False
        while not is_over:
            choice = torch.distributions.Categorical(logits=policy(torch.tensor(state)))
            action = choice.sample()
            state, reward, has_fallen, is_late, _ = game.step(int(action))
            chances.append(choice.log_prob(action))
            rewards.append(reward)
            is_over = has_fallen or is_late
        returns = torch.tensor(rewards).flip(0).cumsum(0).flip(0)
        return -(torch.stack(chances) * returns).sum()

    return _steps(policy, torch.optim.SGD(policy.parameters(), 0.01), loss)


PROGRAMS = [
    Program("Trainer of transformers", "transformers", hugging_face, True, _NUM_STEPS),
    Program("Trainer of Lightning", "lightning", lightning, False, _NUM_STEPS),
    Program("graph attention", "torch_geometric", graph_attention, False, _NUM_STEPS),
    Program("policy gradient", "gymnasium", policy_gradient, True, _NUM_STEPS),
]
