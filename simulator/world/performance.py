"""Performance numbers of simulated collectives, as plain data: the sandbox has neither YAML nor the catalogue."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import yaml

from config.data import language_models, skus


@functools.cache
def numbers() -> dict[str, Any]:
    """Returns `performance.yaml`, with the numbers of VM sizes in "skus" and of models in "language_models"."""
    general: dict[str, Any] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
    models = {
        name: {**model.model_dump(), "weight_bytes": model.weight_bytes, "parameters": model.parameters}
        for name, model in language_models.language_models().items()
    }
    sizes = {sku.name: _of(sku, general) for sku in skus.catalogue().values() if sku.gpus}
    return general | {"skus": sizes, "language_models": models}


def _of(sku: skus.VmSku, general: dict[str, Any]) -> dict[str, Any]:
    healthy = sku.nccl_busbw.healthy if sku.nccl_busbw else None
    return {
        "gpus": sku.gpus,
        "hcas": sku.infiniband.hcas if sku.infiniband else 0,
        "sharp": bool(sku.infiniband and sku.infiniband.sharp),
        "nvlink_sharp": sku.gpu_model in general["nvlink_sharp_models"],
        "tflops": sku.gpu_bf16_tflops,
        "gpu_memory_gb": sku.gpu_memory_gb,
        "busbw": healthy.model_dump() if healthy else None,
        "memory_gib": sku.memory_gib,
        "topology": sku.topology,
        "health": sku.health.model_dump(),
    }
