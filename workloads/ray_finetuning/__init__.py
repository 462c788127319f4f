"""Fine-tuning of language models by LoRA with our own loop, as a RayJob of a team."""

from __future__ import annotations

from workloads.ray_finetuning.workload import RayFinetuning

WORKLOAD = RayFinetuning()
