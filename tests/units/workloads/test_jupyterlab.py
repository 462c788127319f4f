"""JupyterLab: its password stays out of sight, it runs without rights, and it takes the GPUs that it was given."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from cryptography.exceptions import InvalidKey
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

import workloads
from config.problems.errors import SettingsError
from config.problems.fixes import path_text
from config.schema.pools import PoolSettings
from config.schema.storage import KeptOn, StorageSettings
from config.schema.workload import Ground
from tests.support.pools import H100, RDMA, pool
from tests.support.settings import load
from workloads.jupyterlab import WORKLOAD
from workloads.jupyterlab.manifests import (
    LABELS,
    MOUNT_OPTIONS,
    Notebook,
    deployment_spec,
    hashed,
    server_config,
    service_spec,
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
    settings = PoolSettings(vm_sku=H100)
    ground = Ground(
        pool_key="gpu",
        pool=settings,
        pool_path=(),
        most_path=("nodeCount",),
        nodes=1,
        pools={"gpu": settings},
        storage=StorageSettings(),
        shared_files=shared_files,
        scratch=True,
    )
    found = WORKLOAD.problems(JupyterLabOptions(**options), ground)
    return [(path_text(problem.path), problem.what, problem.fix) for problem in found]


def test_the_hash_is_one_that_jupyter_server_verifies() -> None:
    kind, _, phc = hashed(PASSWORD, "a/b/c").partition(":")
    assert kind == "argon2"
    Argon2id.verify_phc_encoded(PASSWORD.encode(), phc)
    with pytest.raises(InvalidKey):
        Argon2id.verify_phc_encoded(b"hunter3", phc)


def test_the_hash_stays_the_same_and_differs_from_other_stacks() -> None:
    assert hashed(PASSWORD, "a/b/dev") == hashed(PASSWORD, "a/b/dev")
    assert hashed(PASSWORD, "a/b/dev") != hashed(PASSWORD, "a/b/prod")


def test_the_server_asks_for_the_password_and_nothing_else() -> None:
    provider = json.loads(server_config("argon2:x"))["PasswordIdentityProvider"]
    assert provider == {"hashed_password": "argon2:x", "password_required": True, "allow_password_change": False}


def test_neither_password_nor_hash_is_in_the_pod() -> None:
    text = json.dumps(template())
    assert PASSWORD not in text
    assert "argon2" not in text


def test_the_password_is_not_printed_with_the_options() -> None:
    assert PASSWORD not in repr(JupyterLabOptions(password=PASSWORD))


def test_another_password_is_another_pod() -> None:
    before = deployment_spec(notebook())
    assert deployment_spec(replace(notebook(), server_config=server_config("argon2:y"))) != before


def test_without_a_password_it_is_refused() -> None:
    ((path, what, fix),) = problems()
    assert path == "workloadOptions.jupyterlab.password"
    assert "is not set" in what
    assert fix == "pulumi config set --secret --path workloadOptions.jupyterlab.password"


def test_where_there_are_no_shared_files_it_is_refused() -> None:
    """As on a private platform, unless that has them by NFS."""
    ((path, what, fix),) = problems("none", password=PASSWORD)
    assert path == "storage.sharedFiles"
    assert what == "is none, and workload jupyterlab has shared files"
    assert fix == "change storage.sharedFiles in the stack file to what is allowed", "a share costs more"
    assert problems("nfs", password=PASSWORD) == []


def test_a_password_of_digits_is_a_password() -> None:
    password = JupyterLabOptions.model_validate({"password": 12345}).password
    assert password is not None
    assert password.get_secret_value() == "12345"


def test_it_takes_no_gpu_unless_told() -> None:
    """Nor sees one: images with CUDA ask the container runtime for all of them."""
    assert container()["resources"] == {"requests": {"cpu": "1", "memory": "4Gi"}}
    assert container()["env"] == [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]
    assert container(gpus=2)["resources"]["limits"] == {"nvidia.com/gpu": "2"}
    assert "env" not in container(gpus=2)


def test_it_runs_without_rights() -> None:
    assert template()["spec"]["securityContext"]["runAsNonRoot"] is True
    assert container()["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def test_it_has_its_files_and_the_nodes_scratch() -> None:
    paths = {mount["name"]: mount["mountPath"] for mount in container()["volumeMounts"]}
    assert paths["work"] == "/home/jovyan/work"
    assert paths["scratch"] == "/scratch"
    assert {"uid=1000", "gid=100", "mfsymlinks", "nobrl"} <= set(MOUNT_OPTIONS)


def test_one_server_at_a_time_and_a_service_that_finds_it() -> None:
    spec = deployment_spec(notebook())
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})
    assert spec["template"]["metadata"]["labels"] == spec["selector"]["matchLabels"] == LABELS
    assert service_spec()["selector"] == LABELS
    assert service_spec()["ports"][0]["targetPort"] == container()["ports"][0]["name"]


def test_overrides_come_last_and_leave_the_labels() -> None:
    found = template(pod_overrides={"metadata": {"labels": {"team": "red"}}, "spec": {"priorityClassName": "low"}})
    assert found["metadata"]["labels"] == {**LABELS, "team": "red"}
    assert found["spec"]["priorityClassName"] == "low"


def test_the_settings_say_that_the_password_is_missing() -> None:
    stack = {"vmSku": H100, "workloads": "jupyterlab", "workloadOptions": {"metaseq": {"numNodes": 1}}}
    with pytest.raises(SettingsError) as caught:
        load(stack, known=workloads.find(), secret=("workloadOptions",))
    (problem,) = caught.value.problems
    assert str(problem) == (
        "workloadOptions.jupyterlab.password is not set, and without one anybody could log in\n"
        "    allowed: a password of your own\n"
        "    fix:     pulumi config set --secret --path workloadOptions.jupyterlab.password"
    )
