"""A causal language model of transformers with peft's LoRA. Computes packed rows, with compiled blocks.

The base weights are frozen, and in bf16 on a GPU. LoRA's weights are in fp32, so that small updates are not lost. They
are few, so fp32 is cheap. They are rounded to bf16 for products, as with autocast.
"""

from __future__ import annotations

from typing import Any

import torch
import transformers
from peft import LoraConfig, PeftModel, get_peft_model
from peft.tuners import lora
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention.varlen import varlen_attn

from finetuning.data import IGNORED, Example, Row

ATTENTION = "packed"
_CHUNK = 4096
"""Number of tokens with logits in memory at the same time."""
_CLOSE = {torch.float32: 1e-4, torch.bfloat16: 1e-2}


class ModelError(ValueError):
    """An error in the model, for the user."""


class Linear(lora.Linear):
    """A simpler layer than peft's: no dropout, one adapter, no other precisions."""

    def forward(self, x: Tensor) -> Tensor:
        """Returns the output for `x`, (..., in)."""
        down, up = self.lora_A["default"].weight, self.lora_B["default"].weight
        low = functional.linear(x, down.to(x.dtype)) * self.scaling["default"]
        return self.base_layer(x) + functional.linear(low, up.to(x.dtype))


def attention(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, _: None, *, scaling: float, **packed: Any
) -> tuple[Tensor, None]:
    """Computes causal attention within each sequence. Tensors are (1, heads, tokens, head dimensions)."""
    ends, longest = packed["cu_seq_lens_q"], packed["max_length_q"]
    if query.is_cuda:
        parts = (each[0].transpose(0, 1) for each in (query, key, value))
        seen = varlen_attn(*parts, ends, ends, longest, longest, scale=scaling, window_size=(-1, 0))
        return seen[None], None
    places = torch.arange(query.shape[2], dtype=ends.dtype)
    sequence = torch.searchsorted(ends, places, right=True)
    mask = (sequence[:, None] == sequence) & (places[:, None] >= places)
    seen = functional.scaled_dot_product_attention(query, key, value, mask, scale=scaling, enable_gqa=True)
    return seen.transpose(1, 2), None


transformers.AttentionInterface.register(ATTENTION, attention)


def load(name: str, device: torch.device) -> nn.Module:
    """Loads a model from a folder or the Hugging Face Hub. Raises ModelError."""
    kind = torch.bfloat16 if device.type == "cuda" else torch.float32
    try:
        return transformers.AutoModelForCausalLM.from_pretrained(name, dtype=kind).to(device)
    except (OSError, ValueError) as error:
        raise ModelError(f"model {name} cannot be loaded: {str(error).splitlines()[0]}") from error


def adapted(model: nn.Module, rank: int, alpha: int, targets: list[str] | None) -> PeftModel:
    """Adds a new adapter to layers with the names `targets`, or to peft's default layers. Raises ModelError."""
    config = LoraConfig(r=rank, lora_alpha=alpha, target_modules=targets, task_type="CAUSAL_LM")
    config._register_custom_module({nn.Linear: Linear})
    try:
        return get_peft_model(model, config)
    except ValueError as error:
        raise ModelError(f"the adapter cannot be added: {str(error).splitlines()[0]}") from error


class Learner:
    """Computes the losses of rows, and the gradients of LoRA's weights."""

    def __init__(self, model: PeftModel, size: int, longest: int) -> None:
        """Prepares the model for rows of `size` tokens with sequences of at most `longest`. Raises ModelError."""
        self.size, self.longest = size, longest
        model.eval()  # turns off the dropout of pre-training
        self.causal = model.get_base_model()
        config = self.causal.config
        for key in ("max_position_embeddings", "sliding_window"):
            if longest > (most := getattr(config, key, None) or longest):
                raise ModelError(f"--longest is {longest} tokens, but the model's {key} is {most}")
        self.causal.set_attn_implementation(ATTENTION)
        self.device = self.causal.device
        self.weight = self.causal.get_output_embeddings().weight
        self.scale = 1 / getattr(config, "logits_scaling", 1)  # models of type Granite divide logits
        self.unit = min(size, _CHUNK)
        self._chunk = _chunk

    def compile(self) -> None:
        """Compiles the model's blocks, and the loss."""
        self._chunk = torch.compile(_chunk, dynamic=False)
        for module in self.causal.modules():
            if type(module).__name__ in (self.causal._no_split_modules or ()):
                module.compile()

    def loss(self, examples: list[Example], share: float, *, learn: bool) -> Tensor:
        """Returns the sum of a row's losses in nats, times `share`. `learn` also adds gradients to LoRA's weights."""
        row = Row.of(examples, self.size, self.longest, self.unit, self.device)
        torch._dynamo.mark_dynamic(row.ends, 0)  # all other shapes are fixed
        with torch.set_grad_enabled(learn):
            hidden = self._hidden(row)
        states, gradient = hidden.detach()[0], torch.zeros_like(hidden[0])
        total, part = torch.zeros((), device=self.device), torch.full((), share, device=self.device)
        for places, targets in zip(row.learnt.split(self.unit), row.targets.split(self.unit), strict=True):
            loss, made = self._chunk(states[places], self.weight, targets, self.scale, part)
            total += loss
            gradient.index_add_(0, places, made)
        if learn:
            hidden.backward(gradient[None])
        return total

    def _hidden(self, row: Row) -> Tensor:
        return self.causal.base_model(
            input_ids=row.tokens,
            position_ids=row.positions,
            use_cache=False,
            cu_seq_lens_q=row.ends,
            cu_seq_lens_k=row.ends,
            max_length_q=self.longest,
            max_length_k=self.longest,
        ).last_hidden_state

    def check(self, example: Example) -> None:
        """Compares the loss with transformers' loss. Raises ModelError if they differ. Call this before `compile`."""
        ours = self.loss([example], 1 / example.learnt, learn=False).item()
        tokens = torch.from_numpy(example.tokens)[None].to(self.device)
        labels = tokens.clone()
        labels[:, : example.first] = IGNORED
        self.causal.set_attn_implementation("sdpa")
        with torch.no_grad():
            theirs = self.causal(input_ids=tokens, labels=labels, use_cache=False).loss.item()
        self.causal.set_attn_implementation(ATTENTION)
        if abs(ours - theirs) > _CLOSE[self.causal.dtype] * theirs:
            kind = self.causal.config.model_type
            raise ModelError(f"models of type {kind} are not supported: the loss is {ours} instead of {theirs}")


def _chunk(states: Tensor, weight: Tensor, targets: Tensor, scale: float, share: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the sum of cross-entropies times `share`, and the sum's gradient for `states`. Keeps no logits."""
    logits = (states @ weight.t()).float() * scale
    kept = (targets != IGNORED)[:, None]
    right = torch.arange(weight.shape[0], device=targets.device) == targets[:, None]
    logs = logits.log_softmax(-1)
    loss = -torch.where(right, logs, 0).sum() * share
    gradient = torch.where(kept, logs.exp() - right.float(), 0) * (scale * share)
    return loss, gradient.to(states.dtype) @ weight
