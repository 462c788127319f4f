"""Builds the Jobs that fill the data container and check the config."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pulumi

from config.data.scheduling import ON_SYSTEM_POOL
from workloads._lib.data_check import RULES, SHOWS_LOG
from workloads._lib.files import Files, texts
from workloads._lib.indexed_job import failure_policy
from workloads._lib.pods import Manifest, Mount, environment, pod_template
from workloads.olmo import manifests
from workloads.olmo.manifests import Run, dataset_variables
from workloads.olmo.options import NAME, OlmoOptions

JOB, CHECK = f"{NAME}-data", f"{NAME}-config"
_UPLOAD, _STAGING = "/run/upload", "/staging"
_SCRIPTS = Path(__file__).parent / "scripts"
_SHARED = ("dataset.awk", "dataset.sh")
_NOBODY = 65534
_RETRIES = 20
"""Number of retries. A retry continues the copying. Kubernetes waits up to six minutes before each."""


def files() -> Files:
    """Returns the scripts in a separate ConfigMap, because changed training scripts must not restart the copying."""
    scripts = texts(_SCRIPTS, "prepare*") | {name: (_SCRIPTS / name).read_text(encoding="utf-8") for name in _SHARED}
    return Files(config_map=JOB, folder=f"/opt/{JOB}", contents=scripts)


def job_spec(options: OlmoOptions, *, image: str, upload_secret: pulumi.Input[str]) -> Manifest:
    """Returns a Job on the system pool. Copying needs no GPU, and mostly no bandwidth of the cluster."""
    secret = {"secret": {"secretName": upload_secret}}
    mounts = [
        files().mount(),
        Mount(name="upload", path=_UPLOAD, source=secret, read_only=True),
        Mount(name="staging", path=_STAGING, source={"emptyDir": {}}),
    ]
    container = {
        "name": "copy",
        "image": image,
        "command": ["/bin/bash", files().path("prepare.sh")],
        "env": environment({**dataset_variables(options), "UPLOAD": _UPLOAD, "STAGING": _STAGING}),
        "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}},
        "volumeMounts": [mount.mount() for mount in mounts],
    }
    template = _on_system_pool(container, mounts)
    return {
        "backoffLimit": _RETRIES,
        "podFailurePolicy": failure_policy("copy", template, "FailJob"),
        "template": template,
    }


def check_spec(run: Run) -> Manifest:
    """Returns a Job that lists the data of the config in a custom image, and fails for data that is not OLMo's."""
    own = manifests.files(run.pool)
    container = {
        "name": "check",
        "image": run.image,
        "command": ["/bin/bash", own.path("launch.sh")],
        "env": environment({**dataset_variables(run.options), "CHECK_ONLY": "1"}),
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
        "volumeMounts": [own.mount().mount()],
        **SHOWS_LOG,
    }
    return {"backoffLimit": 0, "podFailurePolicy": RULES, "template": _on_system_pool(container, [own.mount()])}


def _on_system_pool(container: Manifest, mounts: Sequence[Mount]) -> Manifest:
    spec = {
        "restartPolicy": "Never",
        "securityContext": {"runAsNonRoot": True, "runAsUser": _NOBODY, "runAsGroup": _NOBODY},
        **ON_SYSTEM_POOL,
        "containers": [container],
    }
    return pod_template(spec, mounts)
