"""Compares the speed of pre-training on this machine's GPU: ours and common alternatives, each in its own process.

`ours`, `fp8` and `hf` keep bf16 weights with fp32 masters, accumulate gradients in fp32, clip, and use our optimizer.
`hf-autocast` and `plain` keep fp32 weights, as is usual with autocast, and use torch's fused AdamW.
`torchrun --nproc-per-node N benchmarks/pretraining.py ours` runs on several GPUs, each with its own batch.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "docker" / "pytorch-pretraining"))
from pretraining import memory
from pretraining.memory import Way
from pretraining.model import attention
from pretraining.optimizer import MasterAdamW, world
from pretraining.shape import Shape
from pretraining.train import made

PEAK = 989e12
SIZES = {"125m": (12, 768, 6), "1.3b": (24, 2048, 16), "2.7b": (32, 2560, 20), "6.7b": (32, 4096, 32)}
HF_HEADS = {"125m": 12, "1.3b": 32, "2.7b": 32, "6.7b": 32}


def shape_of(size: str, heads: int = 0) -> Shape:
    layers, width, usual = SIZES[size]
    return Shape(layers, width, heads or usual)


class OfHuggingFace(nn.Module):
    """Transformers' OPT with our loss function."""

    def __init__(self, size: str) -> None:
        super().__init__()
        from transformers import OPTConfig, OPTForCausalLM

        layers, width, _ = SIZES[size]
        config = OPTConfig(
            vocab_size=51200,
            hidden_size=width,
            num_hidden_layers=layers,
            ffn_dim=4 * width,
            dropout=0.0,
            num_attention_heads=HF_HEADS[size],
            max_position_embeddings=2048,
            word_embed_proj_dim=width,
            attention_dropout=0.0,
            attn_implementation="sdpa",
            use_cache=False,
        )
        self.opt = OPTForCausalLM(config)

    def forward(self, tokens: Tensor, targets: Tensor) -> Tensor:
        with torch.autocast("cuda", torch.bfloat16):  # has no effect on bf16 weights
            logits = self.opt(input_ids=tokens).logits
        return functional.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def of_hugging_face(options: argparse.Namespace) -> tuple[Shape, nn.Module]:
    """Returns the shape and transformers' OPT model.

    `hf` has bf16 weights. `hf-autocast` has fp32 weights and autocasts to bf16, as transformers' Trainer does with
    `bf16`.
    """
    with torch.device("cuda"):
        model = OfHuggingFace(options.size)
    shape = shape_of(options.size, HF_HEADS[options.size])
    return shape, model if options.what in AUTOCAST else model.to(torch.bfloat16)


class Plain(nn.Module):
    """A compiled GPT like in tutorials, with fp32 weights, autocast to bf16, layer norms with biases, and GELU."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape, width = shape, shape.width
        self.tokens, self.positions = nn.Embedding(shape.vocabulary, width), nn.Embedding(shape.sequence, width)
        self.layers = nn.ModuleList(
            nn.ModuleDict(
                {
                    "one": nn.LayerNorm(width),
                    "qkv": nn.Linear(width, 3 * width),
                    "out": nn.Linear(width, width),
                    "two": nn.LayerNorm(width),
                    "up": nn.Linear(width, 4 * width),
                    "down": nn.Linear(4 * width, width),
                }
            )
            for _ in range(shape.layers)
        )
        self.last = nn.LayerNorm(width)

    def forward(self, tokens: Tensor, targets: Tensor) -> Tensor:
        with torch.autocast("cuda", torch.bfloat16):
            x = self.tokens(tokens) + self.positions.weight
            batch, sequence, width = x.shape
            for layer in self.layers:
                parts = layer["qkv"](layer["one"](x)).chunk(3, -1)
                q, k, v = (each.view(batch, sequence, self.shape.heads, -1).transpose(1, 2) for each in parts)
                seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
                x = x + layer["out"](seen.transpose(1, 2).reshape(batch, sequence, width))
                x = x + layer["down"](functional.gelu(layer["up"](layer["two"](x)), approximate="tanh"))
            logits = functional.linear(self.last(x), self.tokens.weight)
            return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def plain(options: argparse.Namespace) -> tuple[Shape, nn.Module]:
    shape = shape_of(options.size, HF_HEADS[options.size])
    with torch.device("cuda"):
        return shape, Plain(shape)


class Fused:
    """torch's AdamW on fp32 weights, for models with autocast."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.adam = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.95), weight_decay=0.1, fused=True)

    def step(self, rate: float, scale: float) -> None:
        for parameter in self.model.parameters():
            parameter.grad.mul_(scale)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.adam.step()
        self.adam.zero_grad(set_to_none=True)


MADE: dict[str, Callable[[argparse.Namespace], tuple[Shape, nn.Module]]] = {
    "hf": of_hugging_face,
    "hf-autocast": of_hugging_face,
    "plain": plain,
}
AUTOCAST, OURS = ("hf-autocast", "plain"), ("ours", "fp8")


def way_of(options: argparse.Namespace) -> Way:
    return Way(sharded=options.fsdp, recomputes=options.recompute)


def prepared(options: argparse.Namespace) -> tuple[Shape, Callable[..., Tensor], Any]:
    torch.manual_seed(0)
    if options.what in OURS:
        shape = shape_of(options.size, options.heads)
        return shape, *made(shape, torch.device("cuda"), way_of(options), 0, fp8=options.what == "fp8")
    shape, model = MADE[options.what](options)
    optimizer = Fused(model) if options.what in AUTOCAST else MasterAdamW(model.parameters())
    return shape, torch.compile(model) if options.what == "plain" else model, optimizer


def measure(options: argparse.Namespace) -> dict[str, Any]:
    shape, run, optimizer = prepared(options)
    tokens = torch.randint(0, shape.vocabulary, (options.batch, shape.sequence + 1), device="cuda")

    def step() -> Tensor:
        for _ in range(options.accumulate):
            loss = run(tokens[:, :-1], tokens[:, 1:])
            loss.backward()
        optimizer.step(1e-4, 1 / options.accumulate)
        return loss

    context = attention() if options.what in OURS else contextlib.nullcontext()
    begun = time.monotonic()
    with context:
        for _ in range(3):
            step()
        torch.cuda.synchronize()
        compiled, begun = time.monotonic() - begun, time.monotonic()
        for _ in range(options.steps):
            loss = step()
        torch.cuda.synchronize()
    taken, processes = time.monotonic() - begun, world()[1]
    if options.profile:
        with context, torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
            step()
            torch.cuda.synchronize()
        print(seen.key_averages().table(sort_by="cuda_time_total", row_limit=40, max_name_column_width=80))
    rate = processes * options.steps * options.accumulate * options.batch * shape.sequence / taken
    flops = shape_of(options.size).flops_per_token
    needed = memory.needed(shape, options.batch, processes, way_of(options), fp8=options.what == "fp8")
    return {
        "what": options.what,
        "way": str(way_of(options)),
        "size": options.size,
        "batch": options.batch,
        "accumulate": options.accumulate,
        "heads": shape.heads,
        "gpus": processes,
        "tokens/s": round(rate),
        "mfu": round(rate * flops / PEAK / processes, 4),
        "loss": round(loss.item(), 3),
        "GiB": round(torch.cuda.max_memory_allocated() / 2**30, 1),
        "estimated GiB": round(needed / 2**30, 1) if options.what in OURS else None,
        "compiled_s": round(compiled),
    }


def ceiling(options: argparse.Namespace) -> dict[str, Any]:
    """Measures the matrix products and the attention of one step separately, on random numbers."""
    shape = shape_of(options.size, options.heads)
    tokens, width, vocabulary = options.batch * shape.sequence, shape.width, shape.vocabulary
    layers = {"qkv": (3 * width, width), "out": (width, width), "up": (4 * width, width), "down": (width, 4 * width)}
    total, rates = 0.0, {}
    for name, (out, into) in (*layers.items(), ("logits", (vocabulary, width))):
        x = torch.randn(tokens, into, device="cuda", dtype=torch.bfloat16)
        weight = torch.randn(out, into, device="cuda", dtype=torch.bfloat16)
        gradient = torch.randn(tokens, out, device="cuda", dtype=torch.bfloat16)
        found = products(x, weight, gradient)
        rates[name] = [round(2 * tokens * out * into / each / 1e12) for each in found]
        total += sum(found) * (1 if name == "logits" else shape.layers)
    size = (options.batch, shape.heads, shape.sequence, width // shape.heads)
    q, k, v = (torch.randn(size, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3))
    with attention():
        forward = timed(lambda: functional.scaled_dot_product_attention(q, k, v, is_causal=True))
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        backward = timed(lambda: torch.autograd.grad(seen, (q, k, v), seen, retain_graph=True))
    total += shape.layers * (forward + backward)
    rate = tokens / total
    return {
        "what": "ceiling",
        "size": options.size,
        "batch": options.batch,
        "heads": shape.heads,
        "tokens/s": round(rate),
        "mfu": round(rate * shape.flops_per_token / PEAK, 4),
        "tflops": rates,
        "attention_us": round(shape.layers * (forward + backward) / tokens * 1e6, 2),
    }


def products(x: Tensor, weight: Tensor, gradient: Tensor) -> list[float]:
    return [
        timed(lambda: x @ weight.t()),
        timed(lambda: gradient @ weight),
        timed(lambda: gradient.t() @ x),
    ]


def timed(run: Callable[[], object], times: int = 20) -> float:
    for _ in range(5):
        run()
    torch.cuda.synchronize()
    begun = time.monotonic()
    for _ in range(times):
        run()
    torch.cuda.synchronize()
    return (time.monotonic() - begun) / times


def join() -> None:
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        distributed.init_process_group("cpu:gloo,cuda:nccl")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=[*OURS, *MADE, "ceiling"])
    parser.add_argument("--size", default="1.3b", choices=SIZES)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--accumulate", type=int, default=2)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--heads", type=int, default=0)
    parser.add_argument("--fsdp", action="store_true", help="shard our model over the GPUs")
    parser.add_argument("--recompute", action="store_true", help="use activation checkpointing in our model")
    parser.add_argument("--profile", action="store_true", help="print the GPU time by kernel")
    chosen = parser.parse_args()
    join()
    found = ceiling(chosen) if chosen.what == "ceiling" else measure(chosen)
    if world()[0] == 0:
        print(json.dumps(found), flush=True)
    if distributed.is_initialized():
        distributed.destroy_process_group()
