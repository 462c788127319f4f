from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from cryptography.exceptions import InvalidKey
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

from config.problems.fixes import path_text
from config.schema.storage import KeptOn
from tests.support.pools import RDMA, candidate, pool
from workloads.jupyterlab import WORKLOAD
from workloads.jupyterlab.manifests import (
    LABELS,
    Notebook,
    deployment_spec,
    hashed,
    server_config,
)
from workloads.jupyterlab.options import JupyterLabOptions

PASSWORD = "hunter2"


def notebook(**options: Any) -> Notebook:
    return Notebook(
        nodes=1,
        options=JupyterLabOptions(password=PASSWORD, **options),
        pool=pool(scratch="/mnt/nvme/scratch"),
        image="pytorch-notebook:1",
        rdma_resource=RDMA,
        server_config=server_config(hashed(PASSWORD, "organization/ai-on-aks/dev")),
    )


def template(**options: Any) -> dict[str, Any]:
    found: dict[str, Any] = deployment_spec(notebook(**options))["template"]
    return found


def container(**options: Any) -> dict[str, Any]:
    found: dict[str, Any] = template(**options)["spec"]["containers"][0]
    return found


def problems(shared_files: KeptOn = "smb", **options: Any) -> list[tuple[str, str, str]]:
    found = WORKLOAD.problems(JupyterLabOptions(**options), candidate(shared_files=shared_files))
    return [(path_text(problem.path), problem.what, problem.fix) for problem in found]


def test_jupyter_server_accepts_the_hash() -> None:
    kind, _, phc = hashed(PASSWORD, "a/b/c").partition(":")
    assert kind == "argon2"
    Argon2id.verify_phc_encoded(PASSWORD.encode(), phc)
    with pytest.raises(InvalidKey):
        Argon2id.verify_phc_encoded(b"hunter3", phc)


def test_the_hash_is_stable_and_unique_per_stack() -> None:
    assert hashed(PASSWORD, "a/b/dev") == hashed(PASSWORD, "a/b/dev")
    assert hashed(PASSWORD, "a/b/dev") != hashed(PASSWORD, "a/b/prod")


def test_the_pod_has_neither_password_nor_hash() -> None:
    text = json.dumps(template())
    assert PASSWORD not in text
    assert "argon2" not in text


def test_a_new_password_changes_the_pod() -> None:
    before = deployment_spec(notebook())
    assert deployment_spec(replace(notebook(), server_config=server_config("argon2:y"))) != before


def test_requires_shared_files() -> None:
    """A private platform has them only with NFS."""
    ((path, what, fix),) = problems("none", password=PASSWORD)
    assert path == "storage.sharedFiles"
    assert what == "is none, but workload jupyterlab needs shared files"
    assert fix == "pulumi config set --path storage.sharedFiles <value>", "a share costs more"
    assert problems("nfs", password=PASSWORD) == []


def test_accepts_a_password_of_digits() -> None:
    password = JupyterLabOptions.model_validate({"password": 12345}).password
    assert password is not None
    assert password.get_secret_value() == "12345"


def test_requests_no_gpu_by_default() -> None:
    """The variable hides GPUs, because CUDA images request all from the container runtime."""
    assert container()["resources"] == {"requests": {"cpu": "1", "memory": "4Gi"}}
    assert container()["env"] == [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]
    assert container(gpus=2)["resources"]["limits"] == {"nvidia.com/gpu": "2"}
    assert "env" not in container(gpus=2)


def test_overrides_keep_the_labels() -> None:
    found = template(pod_overrides={"metadata": {"labels": {"team": "red"}}, "spec": {"priorityClassName": "low"}})
    assert found["metadata"]["labels"] == {**LABELS, "team": "red"}
    assert found["spec"]["priorityClassName"] == "low"
