"""Files in a notebook's share stay when the notebook is taken out of the stack, and are there when it comes back.

One story, told in the order of the file; its stack has one GPU node.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import yaml

from components import platform_guard
from diagnosis.cluster import is_ready
from simulator.host import paths
from tests.stories.team_jobs import kubectl
from tests.support.world import CommandFailed, Stack, eventually

pytestmark = [pytest.mark.simulator, pytest.mark.charts]
OPTIONS = yaml.safe_load((paths.ROOT / "Pulumi.jupyterlab.yaml").read_text("utf-8"))["config"]
NOTEBOOK = {"workloads": "jupyterlab", "workloadOptions": OPTIONS["ai-on-aks:workloadOptions"]}
WORK = "/home/jovyan/work/notes.txt"


@pytest.fixture(scope="module")
def stack(new_stack: Callable[..., Stack]) -> Stack:
    made = new_stack("kept", vmSku="Standard_NC4as_T4_v3", nodeCount=1, **NOTEBOOK)
    made.up()
    return made


def in_notebook(platform: Stack, script: str, namespace: str = "ai") -> str:
    labels = "app.kubernetes.io/name=jupyterlab"

    def ready() -> bool:
        return any(map(is_ready, platform.kube.list("v1", "Pod", namespace, labels=labels)))

    eventually(ready, "the notebook runs", 180)
    return kubectl(platform, "exec", "-n", namespace, "deploy/jupyterlab", "--", "bash", "-c", script)


def claim(platform: Stack, namespace: str = "ai") -> str:
    """The uid of the notebook's claim, which another one of the same name does not have."""
    found = platform.kube.get("v1", "PersistentVolumeClaim", "jupyterlab", namespace)
    assert found["status"]["phase"] == "Bound"
    uid: str = found["metadata"]["uid"]
    return uid


def test_the_readmes_command_that_stops_the_cost_keeps_the_files_and_names_them(stack: Stack) -> None:
    in_notebook(stack, f"echo 17 tokens >{WORK}")
    before = claim(stack)
    assert stack.outputs()["files"] == {"ai/jupyterlab": "in use"}
    stack.pulumi("config", "rm", "workloads")
    stack.pulumi("config", "set", "nodeCount", "0")
    said = " ".join(stack.pulumi("preview").split())
    assert "stops using the claim ai/jupyterlab, which stays in the cluster with its files" in said
    stack.up()
    assert claim(stack) == before
    assert stack.kube.find("apps/v1", "Deployment", "jupyterlab", "ai") is None
    stack.up("--expect-no-changes")


def refused(platform: Stack) -> str:
    """What a `pulumi destroy` prints that must delete nothing."""
    before = platform.pulumi("stack", "export").count('"urn":')
    said = " ".join(platform.pulumi("destroy", "--yes", "--skip-preview", check=False).split())
    assert platform.returncode
    assert platform.pulumi("stack", "export").count('"urn":') == before
    return said


def test_the_cluster_with_the_files_is_not_destroyed_by_a_mere_destroy(stack: Stack) -> None:
    """Also after a time without protection, in which previews name the data that goes."""
    unprotected = {"protect": False, "containers": {"data": {}}}
    ends, deletes = "ends the protection against deletion of the cluster", "with all files of storage.containers.data"
    for storage, warning in ((unprotected, ends), ({"protect": True}, deletes)):
        stack.set(storage=storage)
        assert warning in " ".join(stack.pulumi("preview").split())
        stack.up()
        assert stack.outputs()["files"]["ai/jupyterlab"].startswith("kubectl delete")
    said = stack.pulumi("destroy", "--yes", check=False)
    assert "because it is protected" in said
    assert "ManagedCluster" in said
    stack.pulumi("state", "unprotect", "--all", "--yes")
    assert "claim ai/jupyterlab keeps files, which are deleted with the cluster" in refused(stack)
    assert claim(stack)


def test_the_notebook_that_comes_back_has_its_files(stack: Stack) -> None:
    before = claim(stack)
    stack.set(nodeCount=1, **NOTEBOOK)
    stack.up()
    assert claim(stack) == before
    assert in_notebook(stack, f"cat {WORK}") == "17 tokens\n"
    stack.up("--expect-no-changes")


def test_they_are_deleted_by_the_command_that_the_stack_gave(stack: Stack) -> None:
    stack.set(workloads=None)
    stack.up()
    command = stack.outputs()["files"]["ai/jupyterlab"].split()
    assert command[0] == "kubectl"
    kubectl(stack, *command[1:])
    assert stack.kube.find("v1", "PersistentVolumeClaim", "jupyterlab", "ai") is None
    stack.up("--expect-no-changes")


@pytest.mark.long
def test_so_has_one_of_another_stack_on_the_platform_that_was_destroyed(stack: Stack, tmp_path: Path) -> None:
    guest = Stack.create(stack.world, "mine", tmp_path / "mine", {"platformStack": stack.name}, like="jupyterlab")
    inside = partial(in_notebook, stack, namespace="mine")
    guest.up()
    inside(f"echo mine >{WORK}")
    before = claim(stack, "mine")
    guest.destroy()
    assert claim(stack, "mine") == before
    eventually(lambda: not stack.kube.list("v1", "Pod", "mine"), "its pods have ended", 90)
    guest.up()
    assert claim(stack, "mine") == before
    assert inside(f"cat {WORK}") == "mine\n"
    guest.destroy()


@pytest.mark.long
def test_that_claim_keeps_the_platform_until_it_is_deleted_or_protection_ends(stack: Stack) -> None:
    stack.pulumi("state", "unprotect", "--all", "--yes")
    command = "kubectl delete persistentvolumeclaim -n mine jupyterlab"
    said = refused(stack)
    assert "claim mine/jupyterlab keeps files" in said
    assert f"To delete this one: {command}. " in said
    for protect in (False, True):
        stack.set(storage={"protect": protect})
        stack.up()
        eventually(lambda: may_be_destroyed(stack) is not protect, f"the cluster allows it: {not protect}")  # noqa: B023
    assert claim(stack, "mine")
    kubectl(stack, *command.split()[1:])
    eventually(lambda: may_be_destroyed(stack), "the cluster allows it without the claim")
    stack.pulumi("state", "unprotect", "--all", "--yes")
    stack.destroy()


def may_be_destroyed(stack: Stack) -> bool:
    try:
        kubectl(stack, "delete", "--dry-run=server", "configmap", "-n", "ai", platform_guard.NAME)
    except CommandFailed as error:
        if "keeps files" in str(error):
            return False
        raise
    return True
