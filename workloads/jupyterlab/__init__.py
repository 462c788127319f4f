"""JupyterLab on a GPU node, with a file share that outlives its pod."""

from __future__ import annotations

from workloads.jupyterlab.workload import JupyterLab

WORKLOAD = JupyterLab()
