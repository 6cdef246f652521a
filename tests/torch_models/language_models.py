"""Models of Hugging Face's transformers, and LoRA around one of them."""

from typing import Any

import pytest

from tests.torch_models.programs import Program, Training, one_step

torch = pytest.importorskip("torch")

_WORDS = 50
_SIZES = {"vocab_size": _WORDS, "num_hidden_layers": 4, "num_attention_heads": 2}
_WIDTHS = {"hidden_size": 32, "intermediate_size": 64}


def _tokens() -> Any:
    return torch.randint(1, _WORDS, (2, 8))


def _causal(model: Any) -> Training:
    tokens = _tokens()
    return one_step(model, lambda: model(tokens, labels=tokens).loss)


def bert() -> Training:
    from transformers import BertConfig, BertForSequenceClassification

    model = BertForSequenceClassification(BertConfig(**_SIZES, **_WIDTHS))
    tokens, labels = _tokens(), torch.tensor([0, 1])
    return one_step(model, lambda: model(tokens, labels=labels).loss)


def _gpt2_model() -> Any:
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(
        GPT2Config(vocab_size=_WORDS, n_embd=32, n_layer=4, n_head=2)
    )


def gpt2() -> Training:
    return _causal(_gpt2_model())


def gpt2_with_checkpoints() -> Training:
    model = _gpt2_model()
    model.gradient_checkpointing_enable({"use_reentrant": False})
    return _causal(model)


def llama() -> Training:
    from transformers import LlamaConfig, LlamaForCausalLM

    return _causal(LlamaForCausalLM(LlamaConfig(**_SIZES, **_WIDTHS)))


def mixtral() -> Training:
    from transformers import MixtralConfig, MixtralForCausalLM

    config = MixtralConfig(
        **_SIZES, **_WIDTHS, num_key_value_heads=1, num_local_experts=4
    )
    return _causal(MixtralForCausalLM(config))


def t5() -> Training:
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(
        vocab_size=_WORDS,
        d_model=32,
        d_kv=8,
        d_ff=64,
        num_layers=4,
        num_heads=2,
        decoder_start_token_id=0,
    )
    return _causal(T5ForConditionalGeneration(config))


def vit() -> Training:
    from transformers import ViTConfig, ViTForImageClassification

    sizes = {name: size for name, size in _SIZES.items() if name != "vocab_size"}
    config = ViTConfig(**sizes, **_WIDTHS, image_size=32, patch_size=8)
    model = ViTForImageClassification(config)
    images, labels = torch.randn(2, 3, 32, 32), torch.tensor([0, 1])
    return one_step(model, lambda: model(images, labels=labels).loss)


def whisper() -> Training:
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    config = WhisperConfig(
        vocab_size=_WORDS,
        num_mel_bins=8,
        d_model=32,
        encoder_layers=4,
        decoder_layers=4,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        max_source_positions=16,
        decoder_start_token_id=1,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
    model = WhisperForConditionalGeneration(config)
    sound, tokens = torch.randn(2, 8, 32), _tokens()
    return one_step(model, lambda: model(input_features=sound, labels=tokens).loss)


def lora() -> Training:
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(r=4, target_modules=["c_attn"], fan_in_fan_out=True)
    return _causal(get_peft_model(_gpt2_model(), config))


PROGRAMS = [
    Program("BERT", "transformers", bert, has_layers=True),
    Program("GPT-2", "transformers", gpt2, has_layers=True),
    Program(
        "GPT-2 with checkpoints",
        "transformers",
        gpt2_with_checkpoints,
        has_layers=True,
        keeps_inputs=True,
    ),
    Program("Llama", "transformers", llama, has_layers=True),
    Program("Mixtral", "transformers", mixtral, has_layers=True),
    Program("T5", "transformers", t5, has_layers=True),
    Program("ViT", "transformers", vit, has_layers=True),
    Program("Whisper", "transformers", whisper, has_layers=True),
    Program("GPT-2 with LoRA", "peft", lora, has_layers=True),
]
