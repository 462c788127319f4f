"""Claims that keep users' files after a workload is removed: the stack's output `files`, and what follows from it.

Pulumi forgets a claim that it retains. So each update reads the output of the last one: it still names the claim.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from config.schema.models import Settings

OUTPUT = "files"
_IN_USE = "in use"


def kept_before(outputs: Mapping[str, Any]) -> Mapping[str, str]:
    """Returns the claims in a stack's last outputs, as namespace/name, each with `in use` or what deletes it."""
    return outputs.get(OUTPUT) or {}


def cluster_keeps_files(settings: Settings, outputs: Mapping[str, Any]) -> bool:
    """Returns whether files of claims would be deleted with the cluster."""
    return settings.keeps_files or bool(kept_before(outputs))


def protects_cluster(settings: Settings, outputs: Mapping[str, Any]) -> bool:
    """Returns whether `pulumi destroy` must refuse to delete the cluster, because files of claims go with it."""
    return settings.storage.protect and cluster_keeps_files(settings, outputs)


def files(made: Iterable[pulumi.Resource], before: Mapping[str, str]) -> pulumi.Output[dict[str, str]]:
    """Returns the output `files`, and warns of each claim that this update stops using.

    Args:
        made: All resources of the stack.
        before: The claims of the last update.
    """
    claims = [each for each in made if isinstance(each, kubernetes.core.v1.PersistentVolumeClaimPatch)]
    names = [pulumi.Output.concat(each.metadata["namespace"], "/", each.metadata["name"]) for each in claims]
    return pulumi.Output.all(*names).apply(lambda used: _files(used, before))


def _files(used: Sequence[str], before: Mapping[str, str]) -> dict[str, str]:
    unused = {claim: _deletion(claim) for claim in sorted(before) if claim not in used}
    for claim, command in unused.items():
        if before[claim] == _IN_USE:
            pulumi.log.warn(
                f"the stack stops using the claim {claim}, which stays in the cluster with its files. A workload that "
                f"names the same claim finds them again. To delete them: {command}"
            )
    return {**unused, **dict.fromkeys(sorted(used), _IN_USE)}


def _deletion(claim: str) -> str:
    namespace, _, name = claim.partition("/")
    return f"kubectl delete persistentvolumeclaim -n {namespace} {name}"
