"""All objects become ready in the stack's second version."""

from __future__ import annotations

import time

import pytest

from simulator.kube.client import KubeClient
from tests.contract.conformance.conftest import NewStack, Rows
from tests.contract.conformance.stack import ConformanceStack, Json

pytestmark = pytest.mark.conformance
SECTION = "Waiting"
TIMEOUT_SECONDS = 6

PROGRAM = """
def meta(name, **annotations):
    return {"namespace": values["namespace"], "name": name,
        "annotations": {f"pulumi.com/{key}": text for key, text in annotations.items()}}

def template(selector):
    return {"metadata": {"labels": {"app": "a"}, "annotations": {"simulator/run-by": "kwok"}},
        "spec": {"nodeSelector": selector, "containers": [{"name": "c", "image": "registry.invalid/never-runs"}]}}

def deployment(name, selector, **annotations):
    k8s.apps.v1.Deployment(name, metadata=meta(name, **annotations), opts=options,
        spec={"selector": {"matchLabels": {"app": "a"}}, "template": template(selector)})

nowhere = {"no": "such-node"}
short = {"timeoutSeconds": str(values["timeout"])}
once = template({})
once["spec"]["restartPolicy"] = "Never"
k8s.batch.v1.Job("job", metadata=meta("job"), spec={"template": once}, opts=options)
deployment("ready", {})
deployment("skipped", nowhere, skipAwait="true")
if values["stuck"] is not None:
    deployment("stuck", nowhere if values["stuck"] else {}, **short if values["stuck"] else {})
    k8s.core.v1.Service("service", metadata=meta("service", **short if values["stuck"] else {}), opts=options,
        spec={"ports": [{"port": 80}], "selector": {"app": "none" if values["stuck"] else "a"}})
"""


@pytest.fixture(scope="module")
def stack(new_stack: NewStack) -> ConformanceStack:
    return new_stack()


def test_objects_that_never_become_ready(stack: ConformanceStack, space: str, kube: KubeClient, rows: Rows) -> None:
    stack.program(PROGRAM, namespace=space, timeout=TIMEOUT_SECONDS, stuck=True)
    started = time.monotonic()
    up = stack.pulumi("up", "--yes", "--skip-preview", "--continue-on-error")
    # Continues with "start", or with "succeed" if the Job started before the first poll.
    rows.contains("Job, while it waits", 'Waiting for Job "conformance-waiting/job" to s', up.output)
    rows.contains(
        "Deployment, while it waits", "Waiting for app ReplicaSet to be available (0/1 Pods available)", up.output
    )
    rows.contains(
        "apps/v1:Deployment, timed out",
        'resource "urn:pulumi:test::plugin-test::kubernetes:apps/v1:Deployment::stuck" was successfully created, but '
        "the Kubernetes API server reported that it failed to fully initialize or become live: 'stuck' timed out "
        "waiting to be Ready",
        up.output,
    )
    why = "[MinimumReplicasUnavailable] Deployment does not have minimum availability."
    rows.contains("the object's conditions", why, up.output)
    state = {resource["urn"].rpartition("::")[2]: resource for resource in stack.resources()}
    rows.is_("a failed object stays in the state", True, unready(state, "stuck"))
    # After the timeout, the plugin checks a Service again: ready with an address and no unready endpoints.
    rows.is_("core/v1:Service with a selector without pods, timed out", False, unready(state, "service"))
    rows.is_("and in the cluster", True, kube.find("apps/v1", "Deployment", "stuck", space) is not None)
    rows.is_("a Job has succeeded", 1, state["job"]["outputs"]["status"].get("succeeded"))
    rows.is_("a Deployment is available", 1, state["ready"]["outputs"]["status"].get("availableReplicas"))
    rows.is_("skipAwait", False, unready(state, "skipped"))
    assert up.code != 0
    assert time.monotonic() - started > TIMEOUT_SECONDS


def test_objects_that_become_ready(stack: ConformanceStack, space: str, kube: KubeClient, rows: Rows) -> None:
    stack.program(PROGRAM, namespace=space, timeout=TIMEOUT_SECONDS, stuck=True)
    preview = stack.preview()
    # The engine updates resources with initErrors even if nothing differs.
    rows.is_("a failed object is updated again", "update", preview.operation("stuck"))
    rows.is_("a Service that timed out is not", "same", preview.operation("service"))
    stack.program(PROGRAM, namespace=space, timeout=TIMEOUT_SECONDS, stuck=False)
    up = stack.up()
    state = {resource["urn"].rpartition("::")[2]: resource for resource in stack.resources()}
    rows.is_("the changed object is ready", False, unready(state, "stuck"))
    assert up.code == 0, up.output
    stack.program(PROGRAM, namespace=space, timeout=TIMEOUT_SECONDS, stuck=None)
    up = stack.up()
    rows.is_("a removed object is deleted", None, kube.find("apps/v1", "Deployment", "stuck", space))
    assert up.code == 0, up.output


def unready(state: dict[str, Json], name: str) -> bool:
    return "initErrors" in state[name]
