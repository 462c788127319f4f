"""Users' files stay when a workload, a stack or an operator goes, and a preview names what is deleted."""

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
    said: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", lambda text, *_, **__: said.append(text))
    program(settings, Azure(outputs=before), secret=SECRET)
    return said


def consumer(settings: Mapping[str, Any], outputs: Mapping[str, Any] | None = None) -> Recorder:
    azure = Azure(stacks={"dev": program(OWN, stack="dev")}, outputs=outputs or {})
    return program({"platformStack": "dev", **settings}, azure, stack="mine", secret=SECRET)


def test_the_notebooks_claim_is_retained_and_taken_over_when_it_is_there_already() -> None:
    claim = program({**OWN, **NOTEBOOK}, secret=SECRET).one(":PersistentVolumeClaimPatch", "jupyterlab")
    assert is_retained(claim)
    assert claim.inputs["metadata"]["annotations"] == {"pulumi.com/patchForce": "true"}


@pytest.mark.parametrize(
    ("was", "size", "warns"), [("150Gi", "50Gi", True), ("1Ti", "1024Gi", False), (None, "50Gi", False)]
)
def test_a_claim_that_shrinks_is_warned_of_with_the_command_that_keeps_its_size(
    was: str | None, size: str, warns: bool, warnings: list[str]
) -> None:
    """The API server rejects it in the words of Kubernetes, which do not name the setting."""
    old, new = ({"spec": {"resources": {"requests": {"storage": each}}}} for each in (was, size))

    def update() -> None:
        hook = shrinking_warning("jupyterlab", ("workloadOptions", "jupyterlab", "fsSizeGi"))
        assert hook.opts
        assert hook.opts.on_dry_run
        hook(pulumi.ResourceHookArgs(urn="", id="ai/jupyterlab", name="", type="", old_inputs=old, new_inputs=new))

    deploy(update)
    keep = "pulumi config set -s test --path workloadOptions.jupyterlab.fsSizeGi 150"
    assert [text.startswith("the claim ai/jupyterlab") and text.endswith(keep) for text in warnings] == [True] * warns


@pytest.mark.parametrize("protect", [True, False])
def test_taking_the_notebook_out_warns_and_remembers_the_claim(protect: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {**OWN, "storage": {"protect": protect}}
    (text,) = [each for each in warnings_of(settings, IN_USE, monkeypatch) if "ai/jupyterlab" in each]
    assert "stays in the cluster with its files" in text
    assert text.endswith(DELETION)
    assert program(settings, Azure(outputs=IN_USE)).outputs["files"] == {"ai/jupyterlab": DELETION}


def test_a_claim_is_warned_of_once(monkeypatch: pytest.MonkeyPatch) -> None:
    later = {"files": {"ai/jupyterlab": DELETION}}
    assert not [each for each in warnings_of(OWN, later, monkeypatch) if "jupyterlab" in each]
    assert program(OWN, Azure(outputs=later)).outputs["files"] == later["files"]


def test_a_claim_of_another_class_leaves_the_first_one_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {**OWN, **NOTEBOOK, "storage": {"sharedClass": "azurefile-csi"}}
    assert [each for each in warnings_of(settings, IN_USE, monkeypatch) if "the claim ai/jupyterlab," in each]


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
def test_a_cluster_in_which_claims_keep_files_is_not_destroyed(
    settings: dict[str, Any], before: dict[str, Any], protected: bool
) -> None:
    found = program(settings, Azure(outputs=before), secret=SECRET)
    assert found.one(":ManagedCluster").request.protect == protected


def test_the_namespace_of_a_stack_on_the_platform_stays_with_the_claim() -> None:
    """Also once the stack has another workload there."""
    kept = consumer(NOTEBOOK)
    assert is_retained(kept.one(":NamespacePatch", "namespace-mine"))
    assert kept.outputs["files"] == {"mine/jupyterlab": "in use"}
    later = consumer({"workloads": "nccl-allreduce"}, kept.outputs)
    assert is_retained(later.one(":NamespacePatch", "namespace-mine"))
    assert not is_retained(consumer({"workloads": "nccl-allreduce"}).one(":Namespace", "namespace-mine"))


def test_metrics_stay_when_monitoring_goes() -> None:
    monitored = program({**OWN, "operators": {"kubePrometheusStack": {"enabled": True}}})
    assert is_retained(monitored.one(":NamespacePatch", "namespace-monitoring"))


def test_a_team_that_is_taken_out_is_warned_of_with_its_files(monkeypatch: pytest.MonkeyPatch) -> None:
    before = {"platform": {"settings": {"teams": {"red": {"gpus": 8, "users": ["bob"]}}}}}
    (text,) = [each for each in warnings_of(OWN, before, monkeypatch) if "team red" in each]
    assert "its namespace is deleted" in text
    assert text.endswith("kubectl get persistentvolumeclaims -n red")


@case_table(__file__, "stored")
def test_stored_data_that_an_update_deletes_or_stops_protecting_is_named(
    before: dict[str, Any], after: dict[str, Any], expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    last = program({**OWN, "storage": before}).shown
    said = [each for each in warnings_of({**OWN, "storage": after}, last, monkeypatch) if "this update" in each]
    assert len(said) == len(expected)
    for text, part in zip(said, expected, strict=True):
        words = re.sub(r"the storage account aionakstest\w+", "@", text).replace("with all ", "")
        assert words.startswith(f"this update {part}")
        assert text.endswith("protect true") == ("ends the protection" in text)


def test_a_cluster_that_loses_its_protection_is_named_with_its_files(monkeypatch: pytest.MonkeyPatch) -> None:
    last = program({**OWN, **NOTEBOOK}, secret=SECRET).shown
    (text,) = [
        each
        for each in warnings_of({**OWN, **NOTEBOOK, "storage": {"protect": False}}, last, monkeypatch)
        if "protection" in each
    ]
    assert "of the cluster, with the files of its claims." in text
    assert text.endswith("pulumi config set -s test --path storage.protect true")


@case_table(__file__, "registries")
def test_a_registry_that_an_update_deletes_is_named_with_its_images(
    before: dict[str, Any], after: dict[str, Any], keep: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = program({**OWN, "registry": before}).shown
    said = [each for each in warnings_of({**OWN, "registry": after}, last, monkeypatch) if "the registry" in each]
    assert [text.rpartition(": ")[2] for text in said] == ([keep] if keep else [])
    assert all(text.startswith(f"this update deletes the registry {last['registry']} with all its") for text in said)


def test_a_registry_that_goes_with_its_platform_is_named(warnings: list[str]) -> None:
    consumer({}, {"registry": "models.azurecr.io"})
    (text,) = [each for each in warnings if "the registry models.azurecr.io" in each]
    assert text.endswith("To keep the registry: pulumi config rm -s mine platformStack")


def test_shares_of_nfs_are_named_when_their_account_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    inside = {**OWN, "network": {"addressSpace": "10.0.0.0/16"}}
    last = program({**inside, "storage": {"sharedFiles": "nfs", "protect": False}}).shown
    after = {**inside, "storage": {"sharedFiles": "none", "protect": False}}
    (text,) = [each for each in warnings_of(after, last, monkeypatch) if "this update" in each]
    assert "with all files of storage.sharedFiles nfs. To keep them" in text
