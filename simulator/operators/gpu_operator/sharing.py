"""Reads how a node shares GPUs from the configuration of the device plugin and gpu-feature-discovery."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import yaml

from config.data.gpu_sharing import SLICING_LABEL, mig_profiles, partition_of
from config.data.scheduling import GPU_RESOURCE
from k8s.objects import Object
from simulator.operators._loop import label
from simulator.operators.gpu_operator.daemonsets import CONFIG_FOLDER

MIG_ANNOTATION = "simulator/mig"
"""The node annotation with the partitioning of the GPUs."""


class SharingError(ValueError):
    """A configuration that the device plugin rejects at its start."""


@dataclass(frozen=True)
class Sharing:
    """The number of `partitions` of each GPU, and of `replicas` of each partition.

    `partition` is the partitions' name in nvidia-smi, or empty if GPUs are not partitioned.
    """

    resource: str = GPU_RESOURCE
    replicas: int = 1
    partition: str = ""
    partitions: int = 1

    @property
    def shares(self) -> int:
        return self.partitions * self.replicas


def sharing(node: Object, env: Mapping[str, str], config: Callable[[str], bytes | None], product: str) -> Sharing:
    """Returns how a plugin with the environment `env` shares the node's GPUs. Raises SharingError.

    `config` returns a mounted file, or None.
    """
    try:
        resource, replicas = _time_slicing(node, env, config)
    except (AttributeError, KeyError, TypeError, ValueError, yaml.YAMLError) as error:
        raise SharingError(f"the device plugin's configuration is not valid: {error!r}") from error
    profile = node["metadata"].get("annotations", {}).get(MIG_ANNOTATION, "")
    partitions = mig_profiles(product).get(profile)
    if partitions is None or env.get("MIG_STRATEGY") != "single":
        return Sharing(resource, replicas)
    return Sharing(resource, replicas, partition_of(profile), partitions)


def _time_slicing(node: Object, env: Mapping[str, str], config: Callable[[str], bytes | None]) -> tuple[str, int]:
    choice = label(node, SLICING_LABEL) or env.get("DEFAULT_CONFIG", "")
    text = config(f"{CONFIG_FOLDER}/{choice}") if choice else None
    slicing = ((yaml.safe_load(text or b"") or {}).get("sharing") or {}).get("timeSlicing") or {}
    for entry in slicing.get("resources") or []:
        if entry["name"] == GPU_RESOURCE:
            name = f"{GPU_RESOURCE}.shared" if slicing.get("renameByDefault") else GPU_RESOURCE
            if int(entry["replicas"]) < 2:
                raise ValueError("number of replicas must be >= 2")
            return str(entry.get("rename") or name), int(entry["replicas"])
    return GPU_RESOURCE, 1
