from __future__ import annotations

from collections.abc import Callable

import pytest
import yaml

from simulator.host import paths
from tests.e2e.notebooks import WORK, claim, in_notebook, try_to_destroy
from tests.e2e.team_jobs import kubectl
from tests.support.world import Stack

pytestmark = [pytest.mark.simulator, pytest.mark.charts, pytest.mark.long]
OPTIONS = yaml.safe_load((paths.ROOT / "Pulumi.jupyterlab.yaml").read_text("utf-8"))["config"]
NOTEBOOK = {"workloads": "jupyterlab", "workloadOptions": OPTIONS["ai-on-aks:workloadOptions"]}


@pytest.fixture(scope="module")
def stack(new_stack: Callable[..., Stack]) -> Stack:
    made = new_stack("kept", vmSku="Standard_NC4as_T4_v3", nodeCount=1, **NOTEBOOK)
    made.up()
    return made


def test_the_readmes_commands_that_stop_the_cost_keep_the_files(stack: Stack) -> None:
    in_notebook(stack, f"echo 17 tokens >{WORK}")
    before = claim(stack)
    assert stack.outputs()["files"] == {"ai/jupyterlab": "in use"}
    stack.pulumi("config", "rm", "workloads")
    stack.pulumi("config", "set", "nodeCount", "0")
    preview = " ".join(stack.pulumi("preview").split())
    assert "stops using the claim ai/jupyterlab, which stays in the cluster with its files" in preview
    stack.up()
    assert claim(stack) == before
    assert stack.kube.find("apps/v1", "Deployment", "jupyterlab", "ai") is None
    stack.up("--expect-no-changes")


def test_destroy_does_not_delete_the_cluster_with_the_files(stack: Stack) -> None:
    """Turns protection off and on first; previews name the affected data."""
    unprotected = {"protect": False, "containers": {"data": {}}}
    ends, deletes = "ends the protection against deletion of the cluster", "with all files of storage.containers.data"
    for storage, warning in ((unprotected, ends), ({"protect": True}, deletes)):
        stack.set(storage=storage)
        assert warning in " ".join(stack.pulumi("preview").split())
        stack.up()
        assert stack.outputs()["files"]["ai/jupyterlab"].startswith("kubectl delete")
    output = stack.pulumi("destroy", "--yes", check=False)
    assert "because it is protected" in output
    assert "ManagedCluster" in output
    stack.pulumi("state", "unprotect", "--all", "--yes")
    assert "claim ai/jupyterlab keeps files, which are deleted with the cluster" in try_to_destroy(stack)
    assert claim(stack)


def test_a_notebook_that_is_added_again_has_its_files(stack: Stack) -> None:
    before = claim(stack)
    stack.set(nodeCount=1, **NOTEBOOK)
    stack.up()
    assert claim(stack) == before
    assert in_notebook(stack, f"cat {WORK}") == "17 tokens\n"
    stack.up("--expect-no-changes")


def test_the_command_of_the_outputs_deletes_the_files(stack: Stack) -> None:
    stack.set(workloads=None)
    stack.up()
    command = stack.outputs()["files"]["ai/jupyterlab"].split()
    assert command[0] == "kubectl"
    kubectl(stack, *command[1:])
    assert stack.kube.find("v1", "PersistentVolumeClaim", "jupyterlab", "ai") is None
    stack.up("--expect-no-changes")
