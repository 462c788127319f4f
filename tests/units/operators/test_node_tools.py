"""DaemonSets of our own on nodes: where they run, what they may, what `pulumi up` waits for."""

from __future__ import annotations

from typing import Any

import pytest
from pulumi_kubernetes.core.v1 import Namespace

from components.operators import Site
from config.facts.content_tags import image_names
from config.facts.scheduling import SCRATCH_FOLDER
from config.schema.operators import NODE_TOOLS_NAMESPACE, OperatorSettings
from operators import local_nvme_scratch, node_labeler
from tests.support.mocks import Recorder, deploy
from tests.support.settings import H100, load

SCRATCH = local_nvme_scratch.pod_spec("registry.test/local-nvme-scratch:1")
LABELER = node_labeler.pod_spec("registry.test/node-labeler:1")
TOOLS = {local_nvme_scratch.NAME: SCRATCH, node_labeler.NAME: LABELER}


@pytest.fixture(scope="module")
def registered() -> Recorder:
    """What both components register."""

    def declare() -> None:
        site = Site(
            settings=load({"vmSku": H100}),
            pools={},
            image=lambda name: f"registry.test/{name}:1",
            registry=Namespace("registry", metadata={"name": "stands-for-it"}),
            installed={},
            namespace=Namespace("namespace", metadata={"name": NODE_TOOLS_NAMESPACE}),
            scheduler=None,
        )
        local_nvme_scratch.LocalNvmeScratch("local-nvme-scratch", site, local_nvme_scratch.LocalNvmeScratchSettings())
        node_labeler.NodeLabeler("node-labeler", site, OperatorSettings())

    return deploy(declare)


@pytest.mark.parametrize("name", TOOLS)
def test_it_runs_on_nodes_with_any_taint(name: str) -> None:
    assert TOOLS[name]["tolerations"] == [{"operator": "Exists"}]


@pytest.mark.parametrize("name", TOOLS)
def test_its_image_is_ours_and_nothing_waits_for_it_to_be_pushed(name: str, registered: Recorder) -> None:
    daemon_set = registered.one(":DaemonSet", name).inputs
    assert name in image_names()
    assert daemon_set["metadata"]["annotations"] == {"pulumi.com/skipAwait": "true"}
    pod = daemon_set["spec"]["template"]
    assert {container["image"] for container in containers(pod["spec"])} == {f"registry.test/{name}:1"}
    assert daemon_set["spec"]["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()


def test_scratch_is_made_where_the_label_says_and_the_labeler_runs_on_every_gpu_node() -> None:
    assert SCRATCH["nodeSelector"] == {"local-nvme-scratch": "true"}
    assert LABELER["nodeSelector"] == {"ai-on-aks/gpu": "true"}


def test_only_the_container_that_mounts_is_privileged_and_it_ends() -> None:
    privileged = [c["name"] for c in containers(SCRATCH) if c["securityContext"].get("privileged")]
    assert privileged == [container["name"] for container in SCRATCH["initContainers"]]


def test_the_mount_reaches_the_host_and_shows_the_pod_ready() -> None:
    (setup,), (witness,) = SCRATCH["initContainers"], SCRATCH["containers"]
    assert mount(setup, "/mnt")["mountPropagation"] == "Bidirectional"
    assert mount(witness, "/mnt") == {
        "name": "mounts",
        "mountPath": "/mnt",
        "mountPropagation": "HostToContainer",
        "readOnly": True,
    }
    assert witness["readinessProbe"]["exec"]["command"] == ["test", "-d", SCRATCH_FOLDER]


@pytest.mark.parametrize(
    "container",
    [*SCRATCH["containers"], *LABELER["containers"]],
    ids=lambda container: str(container["name"]),
)
def test_what_stays_running_has_no_rights(container: dict[str, Any]) -> None:
    context = container["securityContext"]
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert context["allowPrivilegeEscalation"] is False
    assert all(entry.get("readOnly") for entry in container["volumeMounts"])


def test_the_labeler_may_get_and_patch_nodes_and_nothing_else(registered: Recorder) -> None:
    assert registered.one(":ClusterRole").inputs["rules"] == [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "patch"]}
    ]
    (subject,) = registered.one(":ClusterRoleBinding").inputs["subjects"]
    assert subject == {
        "kind": "ServiceAccount",
        "name": LABELER["serviceAccountName"],
        "namespace": NODE_TOOLS_NAMESPACE,
    }
    assert registered.names(":Role") == []


def test_the_labeler_starts_once_it_has_its_rights(registered: Recorder) -> None:
    needed = " ".join(registered.one(":DaemonSet", "node-labeler").dependencies)
    assert "ClusterRoleBinding" in needed
    assert "ServiceAccount" in needed


def test_scratch_has_no_access_to_the_api() -> None:
    assert SCRATCH["automountServiceAccountToken"] is False


def containers(pod: dict[str, Any]) -> list[dict[str, Any]]:
    return [*pod.get("initContainers", []), *pod["containers"]]


def mount(container: dict[str, Any], path: str) -> dict[str, Any]:
    mounts: list[dict[str, Any]] = container["volumeMounts"]
    return next(entry for entry in mounts if entry["mountPath"] == path)
