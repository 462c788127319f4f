from __future__ import annotations

import contextlib
from collections.abc import Callable
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
Down = Callable[[str], tuple[int, str, list[str]]]


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    steps: list[str] = []
    monkeypatch.setattr(pulumi_cli, "read", lambda *_, **__: STACKS)
    for step in ("start", "stop"):
        monkeypatch.setattr(cli, step, lambda step=step: steps.append(step))
    return steps


@pytest.fixture
def down(done: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Down:
    def run(stack: str) -> tuple[int, str, list[str]]:
        monkeypatch.setenv("STACK", stack)
        code, printed = cli.main(["down"]), capsys.readouterr()
        return code, " ".join(printed.out.split()), printed.err.splitlines()

    return run


@pytest.mark.parametrize(
    ("name", "likely"),
    [
        ("devv", ["  to destroy dev: make down"]),
        ("jupyter", ["  to destroy jupyterlab: make down STACK=jupyterlab"]),
        ("xyz", []),
        ("../dev", ["  to destroy dev: make down"]),
    ],
)
def test_an_unknown_stack_stops_nothing(down: Down, done: list[str], name: str, likely: list[str]) -> None:
    code, _, errors = down(name)
    assert (code, done) == (1, [])
    assert errors == [
        f"error: unknown stack {name}: it is not deployed, and Pulumi.{name}.yaml does not exist. Nothing was stopped.",
        "  deployed stacks: dev (80 resources)",
        *likely,
        "  to stop only the simulator: make stop",
    ]


def test_an_empty_stack_name_is_not_the_default(down: Down, done: list[str]) -> None:
    code, _, (error, fix) = down("")
    assert (code, done, error) == (1, [], "error: STACK is empty.")
    assert fix.startswith("  fix: set it to one of av-resim, batch-inference, dev, ")


def test_a_stack_that_was_never_deployed_is_down(down: Down, done: list[str]) -> None:
    code, output, errors = down("olmo")
    assert (code, done) == (0, ["start"])
    assert output == "stack olmo is not deployed stack dev stays (80 resources); to destroy it: make down"
    assert "the simulator keeps running" in errors[0]


def test_the_simulator_stops_with_the_last_stack_unless_another_is_being_created(
    down: Down, done: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulator_up, "_destroy", lambda *_: done.append("destroy"))
    monkeypatch.setattr(clusters, "protected", lambda _: [])
    monkeypatch.setattr(clusters, "locked", lambda _: [])
    assert down("dev")[0] == 0
    assert done == ["start", "destroy", "stop"]
    monkeypatch.setattr(updates, "under_way", lambda: [updates.Update("hello", "make up", 1, 0)])
    assert down("dev")[0] == 0
    assert done[3:] == ["start", "destroy"]


@pytest.mark.parametrize(
    ("name", "claims", "command"),
    [
        ("data", "", "pulumi state unprotect --all --yes -s dev"),
        (CLUSTER, FILES, "pulumi config set -s dev --path storage.protect false && pulumi up -s dev"),
    ],
)
def test_rejects_a_platform_in_use_protected_data_and_locks(
    down: Down, done: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, claims: str, command: str
) -> None:
    up = [("dev", 80), ("olmo", 5), ("metaseq", 6), ("jupyterlab", 0)]
    listed = [{"name": f"organization/ai-on-aks/{name}", "resourceCount": size} for name, size in up]
    container = {"type": "azure-native:storage:BlobContainer", "urn": f"urn:pulumi:dev::ai::x::{name}", "protect": True}
    group = {"type": "azure-native:resources:ResourceGroup", "urn": "urn:pulumi:dev::ai::x::g", "id": "/groups/ai-dev"}
    state = {"deployment": {"resources": [group, container, {**container, "protect": False}]}}
    monkeypatch.setattr(clusters, "claims", lambda _: ["ai/jupyterlab"])
    monkeypatch.setattr(clusters, "FaultStore", lambda: FaultStore(tmp_path))
    FaultStore(tmp_path).fault(new_fault("lock", level="CanNotDelete", scope="ai-dev"))
    monkeypatch.setattr(pulumi_cli, "read", lambda *asked, **_: state if "export" in asked else listed)
    monkeypatch.setattr(simulator_up, "recover", lambda *_: pytest.fail("destroy has begun"))
    code, _, errors = down("dev")
    assert (code, done) == (1, ["start"])
    assert errors == [
        "error: stack dev cannot be destroyed. Nothing was changed.",
        "  stack metaseq uses this platform; destroy that stack first: make down STACK=metaseq",
        "  stack olmo uses this platform; destroy that stack first: make down STACK=olmo",
        f"  {name}{claims}: protected against deletion. To delete the data with the stack:",
        f"    {command}    # in `make shell`",
        "  Azure deletes nothing under lock CanNotDelete ai-dev: python -m simulator heal lock",
    ]


# -- a consumer stack, and the cluster of its platform ----------------------------------------------------------------

VARIABLE = "PULUMI_K8S_DELETE_UNREACHABLE"


@pytest.fixture
def destroyed(down: Down, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """Variables with which the consumer stack `olmo` is destroyed."""
    given: list[dict[str, str]] = []
    listed, outputs = [{"name": "organization/ai-on-aks/olmo", "resourceCount": 5}], {"files": {"olmo/notes": "in use"}}
    account = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Storage/storageAccounts/olmo1"
    container = f"{account}/blobServices/default/containers/checkpoints"
    made = [{"type": "azure-native:storage:BlobContainer", "id": container}, {"type": "other", "id": "x"}]
    answers = {"output": outputs, "export": {"deployment": {"resources": made}}}
    monkeypatch.setattr(pulumi_cli, "read", lambda *asked, **_: answers.get(asked[1], listed))
    monkeypatch.setattr(pulumi_cli, "run", lambda *_, variables, **__: given.append(dict(variables)))
    for step in ("recover", "continuation"):
        monkeypatch.setattr(simulator_up, step, lambda *_: {})
    found = {"of_stack": {"a cluster"}, "protected": [], "locked": [], "are_gone": False}
    for name, value in found.items():
        monkeypatch.setattr(clusters, name, lambda _, value=value: value)
    return given


@pytest.mark.parametrize(("gone", "variables"), [(True, {VARIABLE: "true"}), (False, {})])
def test_drops_objects_only_of_a_cluster_that_no_longer_exists(
    destroyed: list[dict[str, str]],
    down: Down,
    monkeypatch: pytest.MonkeyPatch,
    gone: bool,
    variables: dict[str, str],
) -> None:
    monkeypatch.setattr(clusters, "are_gone", lambda ids: ids == {"a cluster"} and gone)
    code, output, _ = down("olmo")
    assert (code, destroyed) == (0, [variables])
    assert ("no longer exists in Azure: objects in the cluster are removed from the state" in output) is gone
    assert "these blob containers are deleted, with all files in them: olmo1/checkpoints" in output
    stays = "the claim olmo/notes stays on stack dev with its files. To delete the claim: kubectl delete "
    assert (f"{stays}persistentvolumeclaim -n olmo notes" in output) is not gone


def volume(claim: str, source: str, by: str | None = "file.csi.azure.com") -> dict[str, Any]:
    namespace, _, name = claim.partition("/")
    annotations = {"pv.kubernetes.io/provisioned-by": by} if by else None
    spec = {source: {}, "claimRef": {"namespace": namespace, "name": name}}
    return {"metadata": {"annotations": annotations}, "spec": spec}


def test_lists_claims_that_are_deleted_with_the_cluster(
    destroyed: list[dict[str, str]], down: Down, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Lists claims of any stack and user, without blob containers and folders of an NFS server, which stay."""
    volumes = [volume("mine/notes", "csi"), volume("ai/jupyterlab", "csi"), volume("ai/blob", "csi", None)]
    volumes.append(volume("ai/folder", "nfs"))
    client = contextlib.nullcontext(SimpleNamespace(list=lambda *_: volumes))
    monkeypatch.setattr(KubeClient, "from_kubeconfig", lambda _: client)
    monkeypatch.setattr(paths, "cluster", lambda _: tmp_path)
    monkeypatch.setattr(stacks, "platform_of", lambda _: None)
    (tmp_path / "admin.kubeconfig").touch()
    code, output, _ = down("olmo")
    assert (code, destroyed) == (0, [{}])
    assert "deleted with the cluster, and their files with them: ai/jupyterlab, mine/notes these blob" in output


def test_a_stopped_cluster_must_be_started_first(
    destroyed: list[dict[str, str]], down: Down, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "/subscriptions/s/resourceGroups/ai-dev/providers/Microsoft.ContainerService/managedClusters/dev"
    record = Record(parse_id(text), {"properties": {"powerState": {"code": "Stopped"}}})
    monkeypatch.setattr(clusters, "records", lambda _: [record])
    monkeypatch.setattr(clusters, "of_stack", lambda _: {text})
    code, _, errors = down("olmo")
    assert (code, destroyed) == (1, [])
    assert errors == [
        "error: the cluster is stopped: its API server does not answer. Nothing was destroyed. Start the cluster, "
        "then run `make down STACK=olmo` again:",
        "    az aks start --resource-group ai-dev --name dev    # in `make shell`",
    ]


@pytest.mark.usefixtures("destroyed")
def test_a_failed_destroy_shows_what_blocks_deletions(down: Down, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: str, **__: Any) -> None:
        raise pulumi_cli.PulumiFailed("pulumi destroy failed; its messages are above.")

    monkeypatch.setattr(pulumi_cli, "run", refused)
    monkeypatch.setattr(clusters, "blocked_deletions", lambda ids: [f"  waits: a pod of {min(ids)}"])
    assert down("olmo")[2][1] == "  waits: a pod of a cluster"
