from __future__ import annotations

import json
import re
import select
import shlex
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from simulator.kube.client import KubeClient
from tests.e2e.killing import CLUSTER, installing, interrupted, state, under_way
from tests.support.checkout import Checkout, clients, kill, listening, processes
from tests.support.manifests import manifest
from tests.support.world import CommandFailed, eventually, wait_for_end

pytestmark = [pytest.mark.simulator, pytest.mark.long]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    made = Checkout.copy(tmp_path_factory.mktemp("recovery"))
    yield made
    kill(clients(made.home))
    made.make("stop")


def test_killed_while_the_cluster_is_created(checkout: Checkout) -> None:
    interrupted(checkout, "up", lambda: under_way(checkout, "ManagedCluster"), "the cluster is being created")


def test_killed_while_a_release_is_installed(checkout: Checkout) -> None:
    output = interrupted(checkout, "up", lambda: installing(checkout), "a release is pending")
    assert "released the lock of a killed update" in output
    assert installing(checkout)


def test_only_the_plugin_killed_while_a_release_is_installed(checkout: Checkout) -> None:
    """The engine then ends, and Helm, as a part of the official plugin."""
    command = checkout.begin("up")

    def plugin() -> list[int]:
        return [pid for pid in clients(checkout.home) if is_kubernetes_plugin(pid)]

    eventually(lambda: (plugin() and installing(checkout)) or command.poll() is not None, "a release is pending")
    kill(plugin())
    output, _ = command.communicate(timeout=300)
    assert "its installation was killed" in output
    assert command.returncode != 0
    assert installing(checkout)


def is_kubernetes_plugin(pid: int) -> bool:
    try:
        return b"simulator.plugins.kubernetes" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # already ended
        return False


@contextmanager
def admission_held(kube: KubeClient, group: str) -> Iterator[socket.socket]:
    """Blocks the creation of objects of an API group with a webhook that never answers.

    With the socket closed, the API server ignores the webhook and creates the object.
    """
    hold = f"hold.{group}"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        webhook = {
            "name": hold,
            "clientConfig": {"url": f"https://127.0.0.1:{listener.getsockname()[1]}/"},
            "rules": [{"apiGroups": [group], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["*"]}],
            "failurePolicy": "Ignore",
            "timeoutSeconds": 30,
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        api, kind = "admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"
        kube.create(manifest(api, kind, hold, webhooks=[webhook]))
        try:
            yield listener
        finally:
            kube.delete(api, kind, hold)


def test_killed_while_a_custom_resource_is_created(checkout: Checkout) -> None:
    """The API server created it, the plugin has no answer, and the engine records it as being created."""
    with (
        KubeClient.from_kubeconfig((checkout.home / CLUSTER / "admin.kubeconfig").read_text()) as kube,
        admission_held(kube, "mellanox.com") as webhook,
    ):

        def moment() -> bool:
            called = select.select([webhook], [], [], 0)[0]
            return bool(called) and under_way(checkout, "kubernetes:mellanox.com")

        def create() -> None:
            webhook.close()
            eventually(lambda: kube.list("mellanox.com/v1alpha1", "NicClusterPolicy"), "the policy exists")

        output = interrupted(checkout, "up", moment, "an operator's policy is being created", create)
    assert "its installation was killed" in output


def test_the_next_up_completes_the_stack(checkout: Checkout) -> None:
    output = checkout.make("up").stdout
    assert "released the lock of a killed update" in output
    assert re.search("adopted: [1-9]", output), output
    assert "VERDICT: PASS" in output
    with KubeClient.from_kubeconfig((checkout.home / CLUSTER / "admin.kubeconfig").read_text()) as kube:
        assert wait_for_end(kube) == "Completed"
    latest = state(checkout)
    assert not latest.get("pending_operations")
    assert not [resource for resource in latest["resources"] if resource.get("delete")]
    assert not list((checkout.home / "state").rglob("*.attrs"))  # a partial one would break the stack


def test_up_adopts_objects_that_a_killed_plugin_created(checkout: Checkout) -> None:
    """Emulates the killed plugin by removing the job, and its dependent guard, from the state."""
    component = "ai-on-aks:workloads/health-check:WorkloadComponent"
    urn = shlex.quote(f"urn:pulumi:dev::ai-on-aks::{component}$kubernetes:batch/v1:Job::health-check")
    pulumi = "pulumi {} --stack dev --non-interactive"
    checkout.inside(pulumi.format(f"state delete --yes --target-dependents {urn}"))
    with pytest.raises(CommandFailed, match="already exists"):
        checkout.inside(pulumi.format(f"up --yes --skip-preview --target {urn}"))
    output = checkout.make("up").stdout
    assert "the last update failed or was interrupted: this update adopts the unrecorded changes" in output
    checkout.inside(pulumi.format("preview --expect-no-changes"))


def test_down_deletes_objects_that_a_killed_plugin_created(checkout: Checkout) -> None:
    """The objects are a claim, which keeps its volume, and its job."""
    claim = next(r["urn"] for r in state(checkout)["resources"] if r["urn"].endswith("::claim-olmo-data"))
    checkout.inside(f"pulumi state delete --yes --stack dev --non-interactive --target-dependents '{claim}'")
    with pytest.raises(CommandFailed, match="already exists"):
        checkout.inside(f"pulumi up --yes --skip-preview --stack dev --non-interactive --target '{claim}'")
    output = interrupted(checkout, "down", lambda: under_way(checkout, "Release", "deleting"), "a release is deleted")
    assert "deleted PersistentVolumeClaim ai/olmo-data-" in output
    assert "deleted Job ai/olmo: a killed update had created it" in output
    assert state(checkout)["resources"]


def test_down_destroys_the_rest_and_leaves_no_processes_and_files(checkout: Checkout) -> None:
    assert "interrupted deletions: " in checkout.make("down").stdout
    assert not state(checkout).get("resources")
    assert not (checkout.home / CLUSTER).exists()
    assert processes(checkout.home) == []
    assert clients(checkout.home) == []
    assert not [port for port in json.loads((checkout.home / "ports.json").read_text()).values() if listening(port)]
    fresh = Checkout.copy(checkout.folder.parent / "fresh")
    assert checkout.files() == fresh.files()
