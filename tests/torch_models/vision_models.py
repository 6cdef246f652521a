"""Models that see or draw pictures: of torchvision, timm and diffusers."""

import functools
from typing import Any

import pytest

from tests.torch_models.programs import Program, Training, one_step

torch = pytest.importorskip("torch")


def _classified(model: Any, size: int) -> Training:
    images, labels = torch.randn(2, 3, size, size), torch.tensor([0, 1])
    cross_entropy = torch.nn.functional.cross_entropy
    return one_step(model, lambda: cross_entropy(model(images), labels))


def resnet() -> Training:
    from torchvision.models import resnet18

    return _classified(resnet18(num_classes=5), 64)


def from_timm(name: str) -> Training:
    import timm

    model = timm.create_model(name, pretrained=False, num_classes=5)
    return _classified(model, model.default_cfg["input_size"][-1])


def unet() -> Training:
    from diffusers import UNet2DModel

    model = UNet2DModel(
        sample_size=16,
        block_out_channels=(8, 16, 16),
        down_block_types=("DownBlock2D", "AttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "AttnUpBlock2D", "UpBlock2D"),
        layers_per_block=1,
        attention_head_dim=8,
        norm_num_groups=4,
    )
    images, times = torch.randn(2, 3, 16, 16), torch.tensor([3, 8])
    return one_step(model, lambda: model(images, times).sample.square().mean())


def diffusion() -> Training:
    """One step of training: a text's picture gets noise, and the model guesses it."""
    from diffusers import DDPMScheduler, UNet2DConditionModel

    model = UNet2DConditionModel(
        sample_size=16,
        in_channels=4,
        out_channels=4,
        block_out_channels=(8, 16),
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        layers_per_block=1,
        cross_attention_dim=16,
        attention_head_dim=4,
        norm_num_groups=4,
    )
    schedule = DDPMScheduler(num_train_timesteps=100)
    latents, text = torch.randn(2, 4, 16, 16), torch.randn(2, 7, 16)

    def loss() -> Any:
        noise, times = torch.randn_like(latents), torch.randint(0, 100, (2,))
        noisy = schedule.add_noise(latents, noise, times)
        guess = model(noisy, times, encoder_hidden_states=text).sample
        return torch.nn.functional.mse_loss(guess, noise)

    return one_step(model, loss)


_TIMM = ("test_vit", "test_convnext", "test_efficientnet", "test_resnet")

PROGRAMS = [
    Program("ResNet", "torchvision", resnet),
    Program("U-Net", "diffusers", unet),
    Program("diffusion step", "diffusers", diffusion),
    *(
        Program(f"timm's {name}", "timm", functools.partial(from_timm, name))
        for name in _TIMM
    ),
]
