"""Compares the speed of LoRA on this machine's GPU: our loop, and peft with transformers' Trainer.

Each runs in its own process. All use the same base weights in bf16, LoRA of the same rank in fp32 multiplied in bf16,
no dropout, no activation checkpointing, AdamW, and the same synthetic sequences of 256 to 2,048 tokens. Tokens/s
exclude padding. The Trainer pads each batch to its longest sequence, the default of its collator; `--grouped` selects
its sampler that groups sequences of similar length. `peft-trainer-bf16` keeps LoRA's weights in bf16, without autocast,
and is less precise.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, get_peft_model
from tokenizers import Tokenizer, models
from torch import nn
from transformers import (
    DataCollatorForLanguageModeling,
    OPTConfig,
    OPTForCausalLM,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
)

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "docker" / "ray-finetuning"))
from finetuning import data, train
from finetuning.data import Example

SIZES = {"tiny": (2, 64, 2), "125m": (12, 768, 12), "1.3b": (24, 2048, 32), "2.7b": (32, 2560, 32)}
VOCABULARY, LENGTHS, ALPHA, TARGETS = 50272, (256, 2048), 32, ["q_proj", "v_proj"]
WARM_UP = 10
"""The number of steps before the measurement. They include compilation."""


def base(size: str, device: str, kind: torch.dtype) -> nn.Module:
    layers, width, heads = SIZES[size]
    config = OPTConfig(
        vocab_size=VOCABULARY,
        hidden_size=width,
        word_embed_proj_dim=width,
        num_hidden_layers=layers,
        ffn_dim=4 * width,
        num_attention_heads=heads,
        max_position_embeddings=2048,
        dropout=0.0,
        attention_dropout=0.0,
    )
    torch.manual_seed(0)
    with torch.device(device):
        return OPTForCausalLM(config).to(kind)


def sequences(count: int) -> list[Example]:
    return data.synthetic(VOCABULARY, 1, count, LENGTHS)


class Clock:
    """Counts tokens and time after the warm-up steps."""

    def __init__(self) -> None:
        self.steps, self.tokens, self.begun, self.first = 0, 0, 0.0, time.monotonic()

    def step(self, tokens: int | torch.Tensor) -> None:
        if self.steps == WARM_UP:
            torch.cuda.reset_peak_memory_stats()
            torch.cuda.synchronize()
            self.begun = time.monotonic()
        if self.steps >= WARM_UP:
            self.tokens = self.tokens + tokens
        self.steps += 1

    def result(self) -> dict[str, Any]:
        torch.cuda.synchronize()
        taken = time.monotonic() - self.begun
        return {
            "tokens/s": round(int(self.tokens) / taken),
            "tokens": int(self.tokens),
            "GiB": round(torch.cuda.max_memory_allocated() / 2**30, 1),
            "warm_up_s": round(self.begun - self.first),
        }


def settings(**those: int) -> argparse.Namespace:
    those = {"alpha": ALPHA, "evaluation": 0, "batch": 1, **those}
    given = [f"--{name}={value}" for name, value in those.items()]
    return train.parser().parse_args(["--model=none", "--output=none", *given, "--targets", *TARGETS])


def ours(chosen: argparse.Namespace) -> dict[str, Any]:
    count = (WARM_UP + chosen.steps) * chosen.pack * 2 // sum(LENGTHS) + 64
    options = settings(pack=chosen.pack, rank=chosen.rank)
    training = train.Training(options, base(chosen.size, "cuda", torch.bfloat16), sequences(count))
    clock = Clock()
    for step in range(1, WARM_UP + chosen.steps + 1):
        clock.step(sum(len(each.tokens) for each in training.rows[step - 1]))
        loss, _, _ = training.step(step)
    found = {"loss": round(loss.item(), 3), "packed": chosen.pack, **clock.result()}
    if chosen.profile:
        profile(lambda: training.step(1))
    return found


class Measured(Trainer):
    """The Trainer with a `Clock` for its tokens."""

    def training_step(self, model: nn.Module, inputs: dict[str, Any], *more: Any, **others: Any) -> torch.Tensor:
        self.clock.step(inputs["attention_mask"].sum())
        return super().training_step(model, inputs, *more, **others)


def collator() -> DataCollatorForLanguageModeling:
    """Returns a collator that pads to the longest sequence, up to a multiple of 8 for tensor cores."""
    words = Tokenizer(models.WordLevel({"<pad>": 1}))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>")  # noqa: S106 - a word
    return DataCollatorForLanguageModeling(tokenizer, mlm=False, pad_to_multiple_of=8)


def peft_trainer(chosen: argparse.Namespace) -> dict[str, Any]:
    autocast = chosen.what != "peft-trainer-bf16"
    steps = WARM_UP + chosen.steps
    model = with_peft(base(chosen.size, "cuda", torch.bfloat16), chosen.rank, autocast_adapter_dtype=autocast)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder,
            per_device_train_batch_size=chosen.batch,
            max_steps=steps,
            bf16=autocast,
            torch_compile=chosen.what == "peft-trainer-compiled",
            train_sampling_strategy="group_by_length" if chosen.grouped else "random",
            learning_rate=2e-4,
            optim="adamw_torch_fused",
            logging_steps=steps,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
        )
        examples = [{"input_ids": each.tokens.tolist()} for each in sequences(steps * chosen.batch)]
        trainer = Measured(model=model, args=arguments, train_dataset=examples, data_collator=collator())
        trainer.clock = Clock()
        seen = trainer.train()
    found = {"loss": round(seen.training_loss, 3), "batch": chosen.batch, "grouped": chosen.grouped}
    return {**found, **trainer.clock.result()}


def with_peft(model: nn.Module, rank: int, **more: Any) -> nn.Module:
    config = LoraConfig(r=rank, lora_alpha=ALPHA, target_modules=TARGETS, task_type="CAUSAL_LM")
    return get_peft_model(model, config, **more)


def profile(run: Any) -> None:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
        run()
        torch.cuda.synchronize()
    print(seen.key_averages().table(sort_by="cuda_time_total", row_limit=40, max_name_column_width=90))


def check(_: argparse.Namespace) -> dict[str, Any]:
    """Returns the loss of one batch (fp32, CPU), packed by us and padded by peft, and how far the gradients differ."""
    examples = data.synthetic(VOCABULARY, 1, 4, (16, 64))
    options = settings(batch=8, pack=128, longest=64)
    training = train.Training(options, base("tiny", "cpu", torch.float32), examples)
    theirs = with_peft(base("tiny", "cpu", torch.float32), options.rank)
    own = dict(theirs.named_parameters())
    with torch.no_grad():
        for name, weight in training.weights.items():
            weight.normal_(std=0.1)
            own[name].copy_(weight)
    batch = collator()([{"input_ids": each.tokens.tolist()} for each in examples])
    reference = theirs(**batch).loss
    reference.backward()
    share = 1 / sum(each.learnt for each in examples)
    loss = sum(training.learner.loss(row, share, learn=True) for row in training.rows)
    apart = [(each.grad - own[name].grad).norm() / own[name].grad.norm() for name, each in training.weights.items()]
    return {"ours": loss.item(), "peft": reference.item(), "gradients_apart": float(max(apart))}


TRAINERS = ("peft-trainer", "peft-trainer-compiled", "peft-trainer-bf16")
MADE = {"ours": ours, "check": check, **dict.fromkeys(TRAINERS, peft_trainer)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=MADE)
    parser.add_argument("--size", default="1.3b", choices=SIZES)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--pack", type=int, default=16384, help="tokens in a pack of our loop")
    parser.add_argument("--batch", type=int, default=8, help="sequences in a batch of the Trainer")
    parser.add_argument("--grouped", action="store_true", help="group sequences of similar length in the Trainer")
    parser.add_argument("--steps", type=int, default=50, help="the Trainer groups this many batches")
    parser.add_argument("--profile", action="store_true", help="print the GPU time by kernel")
    chosen = parser.parse_args()
    found = MADE[chosen.what](chosen)
    print(json.dumps({"what": chosen.what, "size": chosen.size, **found}), flush=True)
