from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from components import platform_guard
from tests.e2e.notebooks import WORK, claim, in_notebook, try_to_destroy
from tests.e2e.team_jobs import kubectl
from tests.support.world import CommandFailed, Stack, eventually

pytestmark = [pytest.mark.simulator, pytest.mark.charts, pytest.mark.long]


@pytest.fixture(scope="module")
def stack(new_stack: Callable[..., Stack]) -> Stack:
    made = new_stack("keeper", workloads=None, vmSku="Standard_NC4as_T4_v3", nodeCount=1, storage={"protect": True})
    made.up()
    return made


def test_a_stack_that_is_deployed_again_has_its_files(stack: Stack, new_stack: Callable[..., Stack]) -> None:
    consumer = new_stack("mine", "jupyterlab", platformStack=stack.name)
    inside = partial(in_notebook, stack, namespace="mine")
    consumer.up()
    inside(f"echo mine >{WORK}")
    before = claim(stack, "mine")
    consumer.destroy()
    assert claim(stack, "mine") == before
    eventually(lambda: not stack.kube.list("v1", "Pod", "mine"), "its pods have ended", 90)
    consumer.up()
    assert claim(stack, "mine") == before
    assert inside(f"cat {WORK}") == "mine\n"
    consumer.destroy()


def test_the_claim_protects_the_platform_until_it_is_deleted_or_protection_ends(stack: Stack) -> None:
    stack.pulumi("state", "unprotect", "--all", "--yes")
    command = "kubectl delete persistentvolumeclaim -n mine jupyterlab"
    output = try_to_destroy(stack)
    assert "claim mine/jupyterlab keeps files" in output
    assert f"To delete this claim: {command}. " in output
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
