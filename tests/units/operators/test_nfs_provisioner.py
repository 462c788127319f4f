"""The NFS provisioner: what its chart is told, what of its settings is refused, and who comes after it."""

from __future__ import annotations

from typing import Any

import pytest

from config.facts.scheduling import SYSTEM_NODES, SYSTEM_TOLERATIONS
from config.problems.errors import SettingsError
from operators import nfs_subdir_external_provisioner
from operators.nfs_subdir_external_provisioner import NfsProvisionerSettings
from tests.support.mocked_azure import Azure
from tests.support.mocks import Recorder, program
from tests.support.settings import T4, load

KEY = "operators.nfsSubdirExternalProvisioner"
ON = {"enabled": True, "server": "10.1.0.4", "path": "/exports/ai"}
NOTEBOOK = {"workloads": "jupyterlab", "workloadOptions": {"jupyterlab": {"password": "open-sesame"}}}


def stack(**settings: Any) -> dict[str, Any]:
    return {"vmSku": T4, "operators": {"nfsSubdirExternalProvisioner": settings}}


def deployed(keys: dict[str, Any], azure: Azure | None = None, name: str = "test") -> Recorder:
    return program(keys, azure or Azure(), name, secret=["workloadOptions"])


def refused(**settings: Any) -> list[tuple[str, str]]:
    with pytest.raises(SettingsError) as error:
        load(stack(**settings))
    return [(str(problem).partition("\n")[0], problem.fix) for problem in error.value.problems]


def test_it_is_off_unless_it_is_asked_for() -> None:
    assert NfsProvisionerSettings().enabled is False
    assert load({"vmSku": T4}).shared_class is None


def test_its_chart_is_told_of_server_and_class_and_keeps_folders_as_it_does_by_itself() -> None:
    made = nfs_subdir_external_provisioner.values(NfsProvisionerSettings(server="10.1.0.4", path="/exports/ai"))
    assert made == {
        "nfs": {"server": "10.1.0.4", "path": "/exports/ai"},
        "storageClass": {
            "name": "nfs-client-pokprod",
            "provisionerName": "k8s-sigs.io/pokprod-nfs-subdir-external-provisioner",
        },
        "nodeSelector": SYSTEM_NODES,
        "tolerations": SYSTEM_TOLERATIONS,
    }


def test_its_release_is_called_as_in_seed_004_and_its_namespace_lets_no_pod_do_more_than_it_needs() -> None:
    recorder = deployed(stack(**ON))
    release = recorder.one("helm.sh/v3:Release", nfs_subdir_external_provisioner.NAME).inputs
    assert (release["name"], release["version"]) == ("pokprod", "4.0.18")
    labels = recorder.one(":Namespace", "namespace-nfs-provisioner").inputs["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "baseline"


@pytest.mark.parametrize(("key", "example"), [("server", "10.1.0.4"), ("path", "/exports/ai")])
def test_server_and_path_are_asked_for(key: str, example: str) -> None:
    lacking = {name: value for name, value in ON.items() if name != key}
    assert refused(**lacking) == [
        (
            f"{KEY}.{key} is not set, and the NFS provisioner has no server of its own",
            f"set it to your server's, as in: pulumi config set --path {KEY}.{key} {example}",
        )
    ]
    assert len(refused(enabled=True)) == 2


@pytest.mark.parametrize(
    ("key", "value", "what"),
    [
        ("server", "nfs://10.1.0.4", "is 'nfs://10.1.0.4'"),
        ("server", "10.1.0.4:/exports", "is '10.1.0.4:/exports'"),
        ("server", "10", "is '10'"),
        ("path", "exports/ai", "is 'exports/ai'"),
        ("path", "/exports/../etc", "is '/exports/../etc'"),
        ("path", "/two words", "is '/two words'"),
        ("storageClass", "azurefile-csi", "is azurefile-csi, AKS's own"),
        ("storageClass", "shared-files", "is shared-files, the class of storage.sharedFiles nfs"),
    ],
)
def test_what_is_no_server_path_or_name(key: str, value: str, what: str) -> None:
    ((said, fix),) = refused(**ON | {key: value})
    assert said == f"{KEY}.{key} {what}"
    assert f"{KEY}.{key}" in fix
    if key in ON:
        assert fix == f"change {KEY}.{key} in the stack file to what is allowed"


@pytest.mark.parametrize(("key", "value"), [("storageClass", "Fast"), ("provisioner", "pokprod")])
def test_a_name_of_another_form_is_not_replaced_by_the_default(key: str, value: str) -> None:
    ((said, fix),) = refused(**ON | {key: value})
    assert (said, fix) == (f"{KEY}.{key} is '{value}'", f"change {KEY}.{key} in the stack file to what is allowed")


@pytest.mark.parametrize(
    ("values", "what"),
    [
        ({"storageClass": {"name": "fast"}}, f"storageClass.name is what {KEY}.storageClass is for"),
        ({"nfs": {"server": "10.1.0.5"}}, f"nfs.server is what {KEY}.server is for"),
        ({"storageClass": {"create": False}}, "storageClass.create is false, and so nothing would make"),
        ({"storageClass": {"archive": False}}, "storageClass.archive is a key that chart"),
    ],
)
def test_values_that_would_say_otherwise_than_the_settings(values: dict[str, Any], what: str) -> None:
    ((said, _),) = refused(**ON, values=values)
    assert said.startswith(f"{KEY}.values.{what}")


def test_shared_files_are_of_its_class_and_come_after_it() -> None:
    recorder = deployed(stack(**ON, storageClass="fast") | NOTEBOOK)
    claim = recorder.one(":PersistentVolumeClaimPatch")
    assert claim.inputs["spec"]["storageClassName"] == "fast"
    assert claim.inputs["metadata"]["name"] == "jupyterlab-fast"
    assert f"kubernetes:helm.sh/v3:Release {nfs_subdir_external_provisioner.NAME}" in claim.dependencies
    assert not recorder.names(":StorageClass")


def test_a_stack_on_the_platform_has_its_class_too() -> None:
    platform = deployed(stack(**ON))
    lodger = deployed({"platformStack": "dev", **NOTEBOOK}, Azure(stacks={"dev": platform}), "mine")
    assert lodger.one(":PersistentVolumeClaimPatch").inputs["spec"]["storageClassName"] == "nfs-client-pokprod"
    assert not lodger.names(":StorageClass")
