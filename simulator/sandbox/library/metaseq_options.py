"""The command line of `metaseq-train` at the commit of docker/metaseq: the fields of its dataclasses by type."""

from __future__ import annotations

import argparse

SWITCHES = """
    add-bos-token alibi azureml-logging bf16 broadcast-buffers checkpoint-activations combine-valid-subsets cpu
    cpu-offload decoder-learned-pos decoder-learned-sinusoidal disable-affine-ln disable-bias disable-validation
    distribute-checkpointed-activations distributed-no-spawn ema-fp32 fast-stat-sync find-unused-parameters
    fix-batches-to-gpus fp16 fp16-adam-stats fp16-no-flatten-grads fp32-reduce-scatter full-megatron-init
    ignore-unused-valid-subsets log-nvidia-smi memory-efficient-fp16 no-emb-dropout no-reshard-after-forward
    no-scale-embedding offload-activations profile quiet-logs reset-dataloader reset-lr-scheduler reset-meters
    reset-optimizer seed-per-rank sequence-parallel share-decoder-input-output-embed
    skip-gradient-update-on-clip-norm skip-invalid-size-inputs-valid-test store-ema
    tensor-parallel-init-model-on-gpu truncate-init use-old-adam use-plasma-view use-sharded-state
"""
SWITCHES_OFF = "save-last-checkpoint write-checkpoints-asynchronously"
"""On unless given."""
WHOLE = """
    all-gather-list-size batch-size batch-size-valid bucket-cap-mb checkpoint-shard-count data-buffer-size
    dataset-size decoder-attention-heads decoder-embed-dim decoder-ffn-embed-dim decoder-layers device-id dict-size
    distributed-port distributed-rank distributed-world-size ema-start-update ema-update-freq empty-cache-freq
    fixed-validation-seed force-anneal fp16-init-scale fp16-scale-window fsdp-checkpoint-wrap-layer-frequency
    keep-last-epochs keep-last-updates local-save-interval-updates log-interval max-epoch max-tokens
    max-tokens-valid max-update max-valid-steps min-params-to-wrap model-parallel-size nfs-eval-attempt-wait-minutes
    nfs-eval-frequency nfs-eval-num-attempts num-shards num-workers num-workers-valid recompute-fc1-num-layers
    required-batch-size-multiple save-interval-epochs save-interval-updates seed self-attn-doc-sep shard-id
    tokens-per-sample update-freq validate-after-updates validate-interval-updates warmup-updates
    zero-lr-warmup-steps
"""
FRACTIONS = """
    adam-eps attention-dropout clip-norm dropout ema-decay end-learning-rate ewm-ratio-to-skip-batch
    fp16-scale-tolerance full-megatron-init-scalar gradient-predivide-factor lr megatron-init-sigma min-loss-scale
    pos-init-scalar power threshold-loss-scale total-num-update weight-decay
"""
TEXTS = """
    adam-betas aim-repo aim-run-hash checkpoint-suffix cloud-upload-path cluster-env distributed-backend
    distributed-init-method ema-seed-model finetune-from-model gen-subset log-file nfs-eval-script-path
    optimizer-overrides plasma-path restore-file save-dir skip-batches tensorboard-logdir train-subset user-dir
    valid-subset wandb-project xf-attn-op
"""
CHOICES = {
    "activation-fn": ("relu", "gelu", "gelu_fast", "gelu_accurate", "tanh", "linear"),
    "arch": ("transformer_lm", "transformer_lm_megatron", "transformer_lm_gpt", "transformer_lm_gpt2_tiny"),
    "attn-variant": ("default", "xformers_default"),
    "clip-norm-type": ("l2", "inf"),
    "criterion": ("cross_entropy", "vocab_parallel_cross_entropy"),
    "dataset-impl": ("raw", "lazy", "cached", "mmap", "fasta"),
    "ddp-backend": ("c10d", "fully_sharded", "pytorch_ddp"),
    "log-format": ("json", "none"),
    "lr-scheduler": ("cosine", "inverse_sqrt", "polynomial_decay"),
    "optimizer": ("adam", "sgd"),
    "task": ("dummy_lm", "language_modeling", "streaming_language_modeling", "streaming_finetune_language_modeling"),
    "task-ddp-backend": ("none", "fully_sharded"),
}
DEFAULTS = {
    "activation_fn": "gelu", "decoder_layers": 72, "decoder_embed_dim": 3072, "decoder_ffn_embed_dim": 4 * 3072,
    "decoder_attention_heads": 32, "dropout": 0.1, "dict_size": 49996, "dataset_size": 100000, "tokens_per_sample": 512,
    "model_parallel_size": 1, "distributed_world_size": 1, "distributed_rank": 0, "device_id": 0, "update_freq": 1,
    "lr": 0.25, "end_learning_rate": 0.0, "warmup_updates": 0, "max_update": 0, "log_interval": 100, "clip_norm": 0.0,
    "fp16_init_scale": 4, "fp16_scale_window": 256, "log_format": "json",
    "metrics": (),
}  # fmt: skip
"""Those that the simulation reads; `transformer_lm_megatron`'s where an architecture has its own.

`metrics` is no option of upstream's: files of rank 0 that record the training.
"""


def parse(arguments: list[str]) -> argparse.Namespace:
    """Options by name. As argparse does, ends the process with 2 and a message for what is not understood."""
    parser = argparse.ArgumentParser(prog="metaseq-train", usage="metaseq-train [options]", allow_abbrev=False)
    for name in SWITCHES.split():
        parser.add_argument(f"--{name}", action="store_true")
    for name in SWITCHES_OFF.split():
        parser.add_argument(f"--{name}", action="store_false")
    for names, kind in ((WHOLE, int), (FRACTIONS, float), (TEXTS, str)):
        for name in names.split():
            parser.add_argument(f"--{name}", type=kind)
    for name, choices in CHOICES.items():
        parser.add_argument(f"--{name}", choices=choices)
    parser.add_argument("data", nargs="?")
    parser.set_defaults(**DEFAULTS)
    return parser.parse_args(arguments)
