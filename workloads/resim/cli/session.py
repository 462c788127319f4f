"""Gives a command access to its stack: platform, cluster and the batch's container."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from workloads.resim.batch import Layout, Refused, numbered
from workloads.resim.cli import store
from workloads.resim.cli.platform import Platform, platform
from workloads.resim.cli.processes import Kubectl, kubectl, outputs
from workloads.resim.cli.store import Store
from workloads.resim.manifests import BATCH_LABEL, OWNER, TEMPLATES, TEST_IO, own_folder
from workloads.resim.options import NAME


@dataclass(frozen=True)
class Session:
    platform: Platform
    kubectl: Kubectl
    templates: Mapping[str, Mapping[str, Any]]
    owner: str

    def template(self, name: str) -> Mapping[str, Any]:
        """Returns a template of the stack. Raises Refused if it does not exist."""
        if name not in self.templates:
            there = ", ".join(self.templates)
            what = f"--template is {name}, but the stack does not have this template"
            raise Refused(what, there, f"--template {next(iter(self.templates), TEST_IO)}")
        return self.templates[name]

    def jobs(self, batch: str) -> list[dict[str, Any]]:
        return self.kubectl.list("jobs", f"{BATCH_LABEL}={batch}")

    def batches(self) -> list[str]:
        return sorted({job["metadata"]["labels"][BATCH_LABEL] for job in self.kubectl.list("jobs", BATCH_LABEL)})

    @contextmanager
    def store(self, batch: str) -> Iterator[Store]:
        name = next(iter(self.templates.values()))["outputContainer"]
        folder = own_folder(self.template(TEST_IO)) if batch == NAME else batch
        with store.opened(self.platform.container(name), Layout(self.platform.namespace, folder)) as found:
            yield found

    def scenarios(self, batch: str, kept: Store) -> list[str]:
        """Returns all scenarios of a submitted batch, or of the stack's own batch. Raises Refused for other names."""
        if kept.identity() is not None:
            return kept.scenarios()
        if batch == NAME and (own := self.jobs(NAME)):
            return numbered(max(job["spec"]["completions"] for job in own))
        if batch == NAME:
            what = f"{NAME}, the stack's own batch, has no Jobs"
            raise Refused(what, "a submitted batch, or the stack's own batch after a refresh", "pulumi up --refresh")
        there = self.batches()
        fix = f"python -m workloads.resim status {there[0]}" if there else "python -m workloads.resim submit --njobs 20"
        raise Refused(f"batch {batch} does not exist", ", ".join(there) or "a submitted batch", fix)


@contextmanager
def session(stack: str) -> Iterator[Session]:
    """Yields a session. Raises Refused if the stack is not up or has no resim, or its API server does not answer."""
    own = outputs(stack)
    shared_platform = own.get("platformStack", "")
    place = platform(stack, own, outputs(shared_platform) if shared_platform else own)
    with kubectl(place.kubeconfig, place.namespace) as cluster:
        found, owner = (_config_map(cluster, name) for name in (TEMPLATES, OWNER))
        templates = {name.removesuffix(".json"): json.loads(text) for name, text in found["data"].items()}
        yield Session(place, cluster, templates, owner["metadata"]["uid"])


def _config_map(cluster: Kubectl, name: str) -> dict[str, Any]:
    found = cluster.find("configmap", name)
    if found is None:
        what = f"namespace {cluster.namespace} has no ConfigMap {name}"
        raise Refused(what, f"a stack with a deployed workload {NAME}", "pulumi up --refresh")
    return found
