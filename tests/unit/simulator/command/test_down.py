"""`make down` where there is nothing to destroy (a mistyped name stops nothing), or where other stacks run on it."""

from __future__ import annotations

import contextlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from simulator.azure.ids import parse_id
from simulator.azure.store import Record
from simulator.command import cli, clusters, pulumi_cli, stacks, updates
from simulator.command import up as simulator_up
from simulator.host import paths
from simulator.kube.client import KubeClient
from simulator.world.faults import FaultStore, new_fault

CLUSTER, FILES = simulator_up.CLUSTER, " (with the files of the claims ai/jupyterlab)"
STACKS = [{"name": "organization/ai-on-aks/dev", "current": True, "resourceCount": 80}]


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was done to the simulator, in which `dev` is up."""
    steps: list[str] = []

    def listed(*_: str, **__: Any) -> list[dict[str, Any]]:
        return STACKS

    monkeypatch.setattr(pulumi_cli, "read", listed)
    for step in ("start", "stop"):
        monkeypatch.setattr(cli, step, lambda step=step: steps.append(step))
    return steps


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("devv", ["if dev is meant: make down\n"]),
        ("jupyter", ["if jupyterlab is meant: make down STACK=jupyterlab\n"]),
        ("xyz", []),
        ("../dev", ["if dev is meant: make down\n"]),
    ],
)
def test_a_mistyped_one_stops_nothing(
    done: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    meant: list[str],
) -> None:
    monkeypatch.setenv("STACK", name)
    assert cli.main(["down"]) == 1
    said = capsys.readouterr().err
    assert done == []
    assert f"there is no stack {name}: neither in the simulator nor as a file Pulumi.{name}.yaml" in said
    assert "the simulator has: dev (80 resources)\n" in said
    assert [line.lstrip() for line in said.splitlines(keepends=True) if "is meant" in line] == meant
    assert said.endswith("to stop the simulator alone: make stop\n")


def test_an_empty_one_is_no_other_way_to_say_dev(
    done: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As of a shell variable that is not set."""
    monkeypatch.setenv("STACK", "")
    assert cli.main(["down"]) == 1
    assert done == []
    assert "STACK is empty.\n  fix: name one of av-resim, batch-inference, dev, " in capsys.readouterr().err


def test_one_with_a_file_that_was_never_brought_up_is_down(
    done: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STACK", "olmo")
    assert cli.main(["down"]) == 0
    assert done == ["start"]
    told = capsys.readouterr()
    assert "there is no stack olmo in the simulator" in told.out
    assert "stack dev stays (80 resources): `make down` destroys it too" in told.out
    assert "the simulator keeps running" in told.err


def test_the_last_stack_takes_the_simulator_with_it_unless_another_is_being_made(
    done: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulator_up, "_destroy", lambda *_: done.append("destroy"))
    monkeypatch.setattr(clusters, "protected", lambda _: [])
    monkeypatch.setattr(clusters, "locked", lambda _: [])
    monkeypatch.setenv("STACK", "dev")
    assert cli.main(["down"]) == 0
    assert done == ["start", "destroy", "stop"]
    made = updates.Update("hello", "make up", 1, 0)
    monkeypatch.setattr(updates, "under_way", lambda: [made])
    assert cli.main(["down"]) == 0
    assert done == ["start", "destroy", "stop", "start", "destroy"]


@pytest.mark.parametrize(
    ("name", "claims", "command"),
    [
        ("data", "", "pulumi state unprotect --all --yes -s dev"),
        (CLUSTER, FILES, "pulumi config set -s dev --path storage.protect false && pulumi up -s dev"),
    ],
)
def test_a_platform_that_others_run_on_or_that_has_protected_data_stays_as_it_is(
    name: str,
    claims: str,
    command: str,
    done: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    """It is not tried: what a refused destroy leaves would be taken for leftovers of a killed one."""
    up = [("dev", 80), ("olmo", 5), ("metaseq", 6), ("jupyterlab", 0)]
    listed = [{"name": f"organization/ai-on-aks/{name}", "resourceCount": size} for name, size in up]
    container = {"type": "azure-native:storage:BlobContainer", "urn": f"urn:pulumi:dev::ai::x::{name}", "protect": True}
    group = {"type": "azure-native:resources:ResourceGroup", "urn": "urn:pulumi:dev::ai::x::g", "id": "/groups/ai-dev"}
    state = {"deployment": {"resources": [group, container, {**container, "protect": False}]}}
    monkeypatch.setattr(clusters, "claims", lambda _: ["ai/jupyterlab"])
    monkeypatch.setattr(clusters, "FaultStore", lambda: FaultStore(tmp_path))
    FaultStore(tmp_path).fault(new_fault("lock", level="CanNotDelete", scope="ai-dev"))
    monkeypatch.setattr(pulumi_cli, "read", lambda *asked, **_: state if "export" in asked else listed)
    monkeypatch.setattr(simulator_up, "recover", lambda *_: pytest.fail("it is taken up"))
    monkeypatch.setenv("STACK", "dev")
    assert cli.main(["down"]) == 1
    assert done == ["start"]
    assert capsys.readouterr().err.splitlines() == [
        "error: stack dev cannot go. Nothing was destroyed.",
        "  stack metaseq runs on dev: `make down STACK=metaseq` destroys it first",
        "  stack olmo runs on dev: `make down STACK=olmo` destroys it first",
        f"  {name}{claims}: protected against deletion. To lose what is in there, with dev:",
        f"    {command}    # in `make shell`",
        "  Azure deletes nothing under lock CanNotDelete ai-dev: `python -m simulator heal lock`",
    ]


# -- a consumer stack, and the cluster of its platform ----------------------------------------------------------------

VARIABLE = "PULUMI_K8S_DELETE_UNREACHABLE"


@pytest.fixture
def destroyed(done: list[str], monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """The variables with which the consumer stack `olmo` is destroyed."""
    given: list[dict[str, str]] = []
    listed, outputs = [{"name": "organization/ai-on-aks/olmo", "resourceCount": 5}], {"files": {"olmo/notes": "in use"}}
    account = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Storage/storageAccounts/olmo1"
    container = f"{account}/blobServices/default/containers/checkpoints"
    made = [{"type": "azure-native:storage:BlobContainer", "id": container}, {"type": "other", "id": "x"}]
    answers = {"output": outputs, "export": {"deployment": {"resources": made}}}
    monkeypatch.setattr(pulumi_cli, "read", lambda *asked, **_: answers.get(asked[1], listed))
    monkeypatch.setattr(pulumi_cli, "run", lambda *_, variables, **__: given.append(dict(variables)))
    for step in ("recover", "goes_on"):
        monkeypatch.setattr(simulator_up, step, lambda *_: {})
    monkeypatch.setattr(clusters, "of_stack", lambda _: {"a cluster"})
    monkeypatch.setattr(clusters, "protected", lambda _: [])
    monkeypatch.setattr(clusters, "locked", lambda _: [])
    monkeypatch.setenv("STACK", "olmo")
    return given


@pytest.mark.parametrize(("gone", "variables"), [(True, {VARIABLE: "true"}), (False, {})])
def test_what_was_in_a_cluster_is_forgotten_only_where_azure_has_it_no_more(
    destroyed: list[dict[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    gone: bool,
    variables: dict[str, str],
) -> None:
    monkeypatch.setattr(clusters, "are_gone", lambda ids: ids == {"a cluster"} and gone)
    assert cli.main(["down"]) == 0
    assert destroyed == [variables]
    told = " ".join(capsys.readouterr().out.split())
    assert ("gone from Azure: what it had there is taken out of its state" in told) is gone
    assert "these blob containers are deleted, with all files in them: olmo1/checkpoints" in told
    stays = (
        "the claim olmo/notes stays on stack dev with its files. To delete them: kubectl delete persistentvolumeclaim"
    )
    assert (f"{stays} -n olmo notes" in told) is not gone


def volume(claim: str, spec: dict[str, Any], by: str | None = "file.csi.azure.com") -> dict[str, Any]:
    namespace, _, name = claim.partition("/")
    annotations = {"pv.kubernetes.io/provisioned-by": by} if by else None
    return {
        "metadata": {"annotations": annotations},
        "spec": {**spec, "claimRef": {"namespace": namespace, "name": name}},
    }


def test_claims_that_are_deleted_with_a_cluster_are_named_before(
    destroyed: list[dict[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    """Those of any stack and user; not blob containers, nor folders of an NFS server, which stay."""
    csi: dict[str, Any] = {"csi": {}}
    volumes = [volume("mine/notes", csi), volume("ai/jupyterlab", csi), volume("ai/blob", csi, None)]
    volumes.append(volume("ai/folder", {"nfs": {}}))
    monkeypatch.setattr(
        KubeClient, "from_kubeconfig", lambda _: contextlib.nullcontext(SimpleNamespace(list=lambda *_: volumes))
    )
    monkeypatch.setattr(paths, "cluster", lambda _: tmp_path)
    monkeypatch.setattr(clusters, "are_gone", lambda _: False)
    monkeypatch.setattr(stacks, "platform_of", lambda _: None)
    (tmp_path / "admin.kubeconfig").touch()
    assert cli.main(["down"]) == 0
    assert destroyed == [{}]
    assert "deleted with the cluster, and their files with them: ai/jupyterlab, mine/notes\n" in capsys.readouterr().out


def test_objects_in_a_stopped_cluster_are_not_deleted_and_the_command_that_starts_it_is_shown(
    destroyed: list[dict[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = "/subscriptions/s/resourceGroups/ai-dev/providers/Microsoft.ContainerService/managedClusters/dev"
    record = Record(parse_id(text), {"properties": {"powerState": {"code": "Stopped"}}})
    monkeypatch.setattr(clusters, "records", lambda _: [record])
    monkeypatch.setattr(clusters, "of_stack", lambda _: {text})
    assert cli.main(["down"]) == 1
    assert destroyed == []
    assert capsys.readouterr().err.splitlines() == [
        "error: the cluster is stopped: its API server does not answer. Nothing was destroyed. Start it, and then "
        "`make down STACK=olmo` again:",
        "    az aks start --resource-group ai-dev --name dev    # in `make shell`",
    ]


def test_one_that_fails_says_what_kept_objects_from_going(
    destroyed: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*_: str, **__: Any) -> None:
        raise pulumi_cli.PulumiFailed("pulumi destroy failed; its messages are above.")

    monkeypatch.setattr(pulumi_cli, "run", refused)
    monkeypatch.setattr(clusters, "are_gone", lambda _: False)
    monkeypatch.setattr(clusters, "held_up", lambda ids: [f"  waits: a pod of {min(ids)}"])
    assert cli.main(["down"]) == 1
    assert capsys.readouterr().err.splitlines()[1] == "  waits: a pod of a cluster"
