"""Pre-training of decoder-only transformers by our own trainer, as a PyTorchJob of a team."""

from __future__ import annotations

from workloads.pytorch_pretraining.workload import PytorchPretraining

WORKLOAD = PytorchPretraining()
