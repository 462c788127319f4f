"""Warns of GPU nodes that an update removes: their pods end, and what these wrote to the nodes' disks is deleted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from config.problems.fixes import Path, path_text, set_command
from config.schema.models import Settings
from config.schema.pools import agent_pool_name


def removed_nodes(settings: Settings, outputs: Mapping[str, Any], counts: Mapping[str, int]) -> Iterator[str]:
    """Yields a warning for each pool of the last update that loses nodes.

    Args:
        settings: The settings of this update.
        outputs: The stack's outputs of the last update, of which `pools` has the pools' names in ARM by their keys.
        counts: How many nodes each pool of the cluster has now, by its name in ARM.
    """
    names = {key: agent_pool_name(key, pool) for key, pool in settings.gpu_pools().items()}
    wanted = {names[key]: pool for key, pool in settings.gpu_pools().items()}
    for key, name in sorted({*outputs.get("pools", {}).items(), *names.items()}):  # an `up` that failed has no outputs
        has, pool = counts.get(name, 0), wanted.get(name)
        # A lower `autoscale.max` removes no node (MicrosoftDocs/azure-docs#123150).
        left = 0 if pool is None else has if pool.autoscale else pool.count
        if left < has:
            path: Path = ("pools", key, "count") if key in settings.pools else ("nodeCount",)
            keep = set_command(path, has).text(settings.stack)
            why = f", since {path_text(path)} is {left}. To keep them: {keep}\n" if pool else ". "
            yield (
                f"this update removes {has - left} of {has} nodes of pool {key} ({name}){why}"
                "Their pods end, and all that they "
                "wrote to the nodes is deleted: in the scratch folder, and in containers (of a notebook, all outside "
                f"its folder work). What runs there: kubectl get pods -A -o wide | grep aks-{name}-"
            )
