"""Builds JupyterLab's manifests from options and hardware."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

from config.schema.overrides import merge
from workloads._lib.base import Run
from workloads._lib.pods import GpuPod, Manifest, Mount, scratch
from workloads.jupyterlab.options import NAME, JupyterLabOptions

PORT = 8888
LABELS = {"app.kubernetes.io/name": NAME}
HOME = "/home/jovyan"
_USER, _GROUP = 1000, 100
"""User jovyan and group users of the images of Jupyter's docker-stacks."""
_CONFIG_FOLDER = "/usr/local/etc/jupyter"
"""A folder of Jupyter's configuration path that is empty in these images."""

MOUNT_OPTIONS = [
    f"uid={_USER}",
    f"gid={_GROUP}",
    "dir_mode=0770",
    "file_mode=0660",
    "mfsymlinks",  # git and Python environments create symbolic links
    "nobrl",  # Jupyter's history is SQLite, whose byte-range locks fail on SMB
    "cache=strict",
    "actimeo=30",
    "nosharesock",
]
"""Options of the SMB share besides the driver's defaults (kubernetes-sigs/azurefile-csi-driver, deploy/example)."""
# The same cost parameters as in Jupyter: jupyter_server/auth/security.py, passwd().
_MEMORY_KIB, _ITERATIONS, _LANES = 10240, 10, 8
_HASH_BYTES, _SALT_BYTES = 32, 16

SERVER_CONFIG = "jupyter_server_config.json"
"""Jupyter reads a file with this name from every folder of its configuration path."""


@dataclass(frozen=True, kw_only=True)
class Notebook(Run[JupyterLabOptions]):
    server_config: str
    claim: str = NAME


def storage_class() -> Manifest:
    return {
        "provisioner": "file.csi.azure.com",
        "parameters": {"skuName": "Standard_LRS", "protocol": "smb"},
        "mount_options": MOUNT_OPTIONS,
        "allow_volume_expansion": True,
        "reclaim_policy": "Delete",
        "volume_binding_mode": "Immediate",
    }


def deployment_spec(notebook: Notebook) -> Manifest:
    """Returns a Deployment that ends the old pod before it starts a new one: both use the same files and any GPUs."""
    return {
        "replicas": 1,
        "strategy": {"type": "Recreate"},
        "selector": {"matchLabels": LABELS},
        "template": _template(notebook),
    }


def service_spec() -> Manifest:
    return {"type": "ClusterIP", "selector": LABELS, "ports": [{"name": "http", "port": PORT, "targetPort": "http"}]}


def _template(notebook: Notebook) -> Manifest:
    options, pool = notebook.options, notebook.pool
    mounts = [
        _files(notebook.claim),
        _configuration(notebook.server_config),
        *([scratch(pool, "/scratch")] if pool.scratch else []),
    ]
    pod = GpuPod(
        pool=pool,
        rdma_resource=notebook.rdma_resource,
        container=_container(notebook),
        # Images with CUDA request all GPUs of the node. If the runtime accepts that, only this variable prevents it.
        variables={} if options.gpus else {"NVIDIA_VISIBLE_DEVICES": "void"},
        mounts=mounts,
        gpus=options.gpus,
        spec={
            "restartPolicy": "Always",
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": _USER,
                "runAsGroup": _GROUP,
                "fsGroup": _GROUP,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
        },
        overrides=merge({"metadata": {"labels": LABELS}}, options.pod_overrides),
    )
    return pod.template()


def _container(notebook: Notebook) -> Manifest:
    return {
        "name": NAME,
        "image": notebook.image,
        "ports": [{"name": "http", "containerPort": PORT}],
        "resources": {"requests": {"cpu": "1", "memory": "4Gi"}},
        # This is the only page without a login.
        "readinessProbe": {"httpGet": {"path": "/api", "port": "http"}, "periodSeconds": 5},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }


def _files(claim: str) -> Mount:
    return Mount(name="work", path=f"{HOME}/work", source={"persistentVolumeClaim": {"claimName": claim}})


def _configuration(server_config: str) -> Mount:
    """Returns the mount of the secret file. A digest in its annotations replaces the pod after a new password."""
    digest = hashlib.sha256(server_config.encode()).hexdigest()[:16]
    source = {"secret": {"secretName": NAME, "defaultMode": 0o440}}
    annotations = {"ai-on-aks/configuration": digest}
    return Mount(name="configuration", path=_CONFIG_FOLDER, source=source, read_only=True, annotations=annotations)


def hashed(password: str, owner: str) -> str:
    """Returns `argon2:` and the PHC string, as PasswordIdentityProvider.hashed_password expects.

    The salt is derived from `owner`, a unique name, because a random salt would change at every `pulumi up`.
    """
    salt = hashlib.sha256(f"jupyterlab {owner}".encode()).digest()[:_SALT_BYTES]
    argon2 = Argon2id(salt=salt, length=_HASH_BYTES, iterations=_ITERATIONS, lanes=_LANES, memory_cost=_MEMORY_KIB)
    return f"argon2:{argon2.derive_phc_encoded(password.encode())}"


def server_config(hashed_password: str) -> str:
    """Returns the configuration that requires the password.

    If `hashed_password` is set, Jupyter does not generate a login token.
    """
    provider = {"hashed_password": hashed_password, "password_required": True, "allow_password_change": False}
    return json.dumps({"PasswordIdentityProvider": provider}, indent=1) + "\n"
