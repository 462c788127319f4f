"""Runs JupyterLab on a GPU node, with a persistent file share."""

from __future__ import annotations

from collections.abc import Iterable

import pulumi
import pulumi_kubernetes as kubernetes

from components.context import WorkloadContext
from config.problems.errors import Problem
from config.rules.plain_secrets import unset_secret
from config.rules.storage import without_shared_files
from config.schema.models import Placement
from config.schema.workload import Candidate, GpuPods
from workloads._lib.base import Deployed, Workload
from workloads._lib.claims import kept_claim
from workloads._lib.pods import NOT_AWAITED
from workloads.jupyterlab.manifests import (
    PORT,
    SERVER_CONFIG,
    Notebook,
    deployment_spec,
    hashed,
    server_config,
    service_spec,
    storage_class,
)
from workloads.jupyterlab.options import NAME, JupyterLabOptions

_PATH = ("workloadOptions", NAME)


class JupyterLab(Workload[JupyterLabOptions]):
    """A Deployment with a file share and a Service."""

    name = NAME
    options = JupyterLabOptions
    pods = GpuPods(container=NAME, restart_policy="Always")

    def problems(self, options: JupyterLabOptions, candidate: Candidate) -> Iterable[Problem]:
        if options.password is None:
            path = (*_PATH, "password")
            yield unset_secret(path, "is not set: anybody could log in", "a password")
        yield from without_shared_files(candidate, NAME)

    def deploy(self, context: WorkloadContext, placement: Placement[JupyterLabOptions]) -> Deployed:
        options = placement.options
        owner = f"{pulumi.get_organization()}/{pulumi.get_project()}/{pulumi.get_stack()}"
        if options.password is None:
            raise ValueError("JupyterLab needs a password")
        config = server_config(hashed(options.password.get_secret_value(), owner))
        claim = context.shared_class.claim(NAME) if context.shared_class else NAME
        notebook = Notebook.placed(context, placement, "pytorch-notebook", server_config=config, claim=claim)
        needed = [_secret(notebook, context), _claim(notebook, context)]
        _server(notebook, context, needed)
        service = f" service/{NAME} {PORT}:{PORT}"
        return Deployed(
            namespace=context.namespace,
            name=NAME,
            command=pulumi.Output.concat("kubectl port-forward -n ", context.namespace, service),
            ends=False,
        )


def _secret(notebook: Notebook, context: WorkloadContext) -> pulumi.Resource:
    secret: pulumi.Resource = kubernetes.core.v1.Secret(
        NAME,
        metadata={"name": NAME, "namespace": context.namespace},
        string_data={SERVER_CONFIG: pulumi.Output.secret(notebook.server_config)},
        opts=context.child(),
    )
    return secret


def _claim(notebook: Notebook, context: WorkloadContext) -> pulumi.Resource:
    shared = context.shared_class
    class_name = shared.name if shared else _class(context).metadata["name"]
    after = shared.made if shared else []
    size = (*_PATH, "fsSizeGi")
    gib = notebook.options.fs_size_gi
    return kept_claim(NAME, notebook.claim, class_name, gib, context, awaited=True, size=size, after=after)


def _class(context: WorkloadContext) -> kubernetes.storage.v1.StorageClass:
    """Creates the StorageClass. It is cluster-wide, so its name contains the namespace."""
    return kubernetes.storage.v1.StorageClass(
        NAME,
        metadata={"name": pulumi.Output.concat(context.namespace, f"-{NAME}")},
        **storage_class(),
        opts=context.child(),
    )


def _server(notebook: Notebook, context: WorkloadContext, needed: list[pulumi.Resource]) -> None:
    """Creates Deployment and Service without waiting: all GPUs may be in use, and the image has several GB."""
    metadata = {"name": NAME, "namespace": context.namespace, "annotations": NOT_AWAITED}
    kubernetes.apps.v1.Deployment(
        NAME,
        metadata=metadata,
        spec=deployment_spec(notebook),
        opts=context.child(depends_on=[*context.ready, *needed]),
    )
    kubernetes.core.v1.Service(
        NAME,
        metadata=metadata,
        spec=service_spec(),
        opts=context.child(),
    )


WORKLOAD = JupyterLab()
