from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pulumi
import pytest

from tests.support.case_files import case_table
from tests.support.mocked_azure import Azure
from tests.support.mocks import Recorder, Registered, deploy, program
from workloads._lib.claims import shrinking_warning

OWN = {"vmSku": "Standard_ND96isr_H100_v5", "cluster": {"localAccounts": True}}
NOTEBOOK = {"workloads": "jupyterlab", "workloadOptions": {"jupyterlab": {"password": "hunter2"}}}
SECRET = ("workloadOptions",)
IN_USE = {"files": {"ai/jupyterlab": "in use"}}
DELETION = "kubectl delete persistentvolumeclaim -n ai jupyterlab"


def is_retained(resource: Registered) -> bool:
    return bool(resource.request.retainOnDelete)


def warnings_of(settings: Mapping[str, Any], before: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    message: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", lambda text, *_, **__: message.append(text))
    program(settings, Azure(outputs=before), secret=SECRET)
    return message


def consumer(settings: Mapping[str, Any], outputs: Mapping[str, Any] | None = None) -> Recorder:
    azure = Azure(stacks={"dev": program(OWN, stack="dev")}, outputs=outputs or {})
    return program({"platformStack": "dev", **settings}, azure, stack="mine", secret=SECRET)


def test_the_notebooks_claim_is_retained_and_adopted_again() -> None:
    claim = program({**OWN, **NOTEBOOK}, secret=SECRET).one(":PersistentVolumeClaimPatch", "jupyterlab")
    assert is_retained(claim)
    assert claim.inputs["metadata"]["annotations"] == {"pulumi.com/patchForce": "true"}


@pytest.mark.parametrize(
    ("was", "size", "warns"), [("150Gi", "50Gi", True), ("1Ti", "1024Gi", False), (None, "50Gi", False)]
)
def test_warns_of_a_smaller_claim_with_the_command_that_keeps_its_size(
    was: str | None, size: str, warns: bool, warnings: list[str]
) -> None:
    """The API server's error does not name the setting."""
    old, new = ({"spec": {"resources": {"requests": {"storage": each}}}} for each in (was, size))

    def update() -> None:
        hook = shrinking_warning("jupyterlab", ("workloadOptions", "jupyterlab", "fsSizeGi"))
        assert hook.opts
        assert hook.opts.on_dry_run
        hook(pulumi.ResourceHookArgs(urn="", id="ai/jupyterlab", name="", type="", old_inputs=old, new_inputs=new))

    deploy(update)
    keep = "pulumi config set -s test --path workloadOptions.jupyterlab.fsSizeGi 150"
    assert [text.startswith("claim ai/jupyterlab") and text.endswith(keep) for text in warnings] == [True] * warns


UNUSED = {"files": {"ai/jupyterlab": DELETION}}
NFS = {**OWN, "network": {"addressSpace": "10.0.0.0/16"}, "storage": {"sharedFiles": "nfs", "protect": False}}


@pytest.mark.parametrize(
    ("settings", "before", "start", "end"),
    [
        (OWN, IN_USE, "the stack stops using the claim ai/jupyterlab, which stays", DELETION),
        ({**OWN, "storage": {"protect": False}}, IN_USE, "the stack stops using the claim ai/jupyterlab,", DELETION),
        (OWN, UNUSED, "", ""),
        ({**OWN, **NOTEBOOK, "storage": {"sharedClass": "azurefile-csi"}}, IN_USE, "the stack stops using", DELETION),
        (OWN, {"platform": {"settings": {"teams": {"red": {"gpus": 8}}}}}, "team red is not in", "claims -n red"),
    ],
    ids=["removed", "removed without protection", "removed before", "another class", "a removed team"],
)
def test_warns_of_files_that_are_unused_or_deleted(
    settings: Any, before: Any, start: str, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = ("ai/jupyterlab", "team red")
    found = [each for each in warnings_of(settings, before, monkeypatch) if any(part in each for part in parts)]
    assert len(found) == bool(start)
    assert all(each.startswith(start) and each.endswith(end) for each in found)


def test_records_the_command_that_deletes_an_unused_claim() -> None:
    for before in (IN_USE, UNUSED):
        assert program(OWN, Azure(outputs=before)).outputs["files"] == UNUSED["files"]


@pytest.mark.parametrize(
    ("before", "change", "part"),
    [
        (NFS, {"sharedFiles": "none"}, "with all files of storage.sharedFiles nfs. To keep the files"),
        ({**OWN, **NOTEBOOK}, {"protect": False}, "of the cluster, with the files of its claims."),
    ],
    ids=["shares of NFS", "protection of the cluster"],
)
def test_warns_of_shared_files_that_are_deleted_or_lose_their_protection(
    before: dict[str, Any], change: dict[str, Any], part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    after = {**before, "storage": {**before.get("storage", {}), **change}}
    found = warnings_of(after, program(before, secret=SECRET).shown, monkeypatch)
    (text,) = [each for each in found if "this update" in each]
    assert part in text


@pytest.mark.parametrize(
    ("settings", "before", "protected"),
    [
        ({**OWN, **NOTEBOOK}, {}, True),
        (OWN, {"files": {"ai/jupyterlab": DELETION}}, True),
        ({**OWN, "storage": {"sharedClass": "azurefile-csi"}}, {}, True),
        ({**OWN, **NOTEBOOK, "storage": {"protect": False}}, IN_USE, False),
        (OWN, {}, False),
    ],
)
def test_protects_a_cluster_with_files_in_claims(
    settings: dict[str, Any], before: dict[str, Any], protected: bool
) -> None:
    found = program(settings, Azure(outputs=before), secret=SECRET)
    assert found.one(":ManagedCluster").request.protect == protected


def test_the_namespace_of_a_consumer_stack_stays_with_its_claim() -> None:
    """It also stays for another workload of the stack."""
    kept = consumer(NOTEBOOK)
    assert is_retained(kept.one(":NamespacePatch", "namespace-mine"))
    assert kept.outputs["files"] == {"mine/jupyterlab": "in use"}
    later = consumer({"workloads": "nccl-allreduce"}, kept.outputs)
    assert is_retained(later.one(":NamespacePatch", "namespace-mine"))
    assert not is_retained(consumer({"workloads": "nccl-allreduce"}).one(":Namespace", "namespace-mine"))


def test_metrics_stay_when_monitoring_is_removed() -> None:
    monitored = program({**OWN, "operators": {"kubePrometheusStack": {"enabled": True}}})
    assert is_retained(monitored.one(":NamespacePatch", "namespace-monitoring"))


@case_table(__file__, "stored")
def test_warns_of_data_that_is_deleted_or_loses_its_protection(
    before: dict[str, Any], after: dict[str, Any], expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    last = program({**OWN, "storage": before}).shown
    message = [each for each in warnings_of({**OWN, "storage": after}, last, monkeypatch) if "this update" in each]
    assert len(message) == len(expected)
    for text, part in zip(message, expected, strict=True):
        words = re.sub(r"the storage account aionakstest\w+", "@", text).replace("with all ", "")
        assert words.startswith(f"this update {part}")
        assert text.endswith("protect true") == ("ends the protection" in text)


@case_table(__file__, "registries")
def test_warns_of_a_deleted_registry(
    before: dict[str, Any], after: dict[str, Any], keep: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = program({**OWN, "registry": before}).shown
    message = [each for each in warnings_of({**OWN, "registry": after}, last, monkeypatch) if "the registry" in each]
    assert [text.rpartition(": ")[2] for text in message] == ([keep] if keep else [])
    assert all(text.startswith(f"this update deletes the registry {last['registry']} with all its") for text in message)


def test_warns_of_the_registry_of_a_removed_platform(warnings: list[str]) -> None:
    consumer({}, {"registry": "models.azurecr.io"})
    (text,) = [each for each in warnings if "the registry models.azurecr.io" in each]
    assert text.endswith("To keep the registry: pulumi config rm -s mine platformStack")
