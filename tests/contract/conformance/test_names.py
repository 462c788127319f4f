from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.contract.conformance.conftest import NewStack, Rows
from tests.contract.conformance.stack import ConformanceStack, Json, Preview

pytestmark = pytest.mark.conformance
SECTION = "Names, inputs and outputs"
UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"  # Pulumi's sentinel of an unknown value
SECRET = "4dabf18193072939515e22adb298388d"  # Pulumi's sentinel of a secret in exported states

PROGRAM = """
space = {"namespace": values["namespace"]}
team = k8s.core.v1.Namespace("team", opts=options)
k8s.core.v1.ConfigMap("settings", metadata=space, data={"a": "1"}, opts=options)
k8s.core.v1.ConfigMap("homeless", data={"a": "1"}, opts=options)
k8s.core.v1.ConfigMap("half", metadata=space, data={"a": pulumi.Output.secret("sesame")}, opts=options)
k8s.core.v1.ConfigMap("labelled", opts=options, data={"a": "plain"},
    metadata=space | {"annotations": {"hidden": pulumi.Output.secret("sesame"), "shown": "plain"}})
k8s.core.v1.Secret("keys", metadata=space, string_data={"password": pulumi.Output.secret("sesame")}, opts=options)
k8s.core.v1.Secret("bare", metadata=space, string_data={"password": "not marked"}, opts=options)
rel = k8s.helm.v3.Release("rel", name="rel", chart=values["chart"], namespace=values["namespace"],
    values={"size": 5}, opts=options)
k8s.core.v1.ConfigMap("follows", metadata=space, data={"status": rel.status.status}, opts=options)
for name, output in {"uid": team.metadata.uid, "status": rel.status, "resourceNames": rel.resource_names}.items():
    output.apply(lambda value, name=name: pulumi.log.info(f"known: {name}"))
"""


@pytest.fixture(scope="module")
def stack(new_stack: NewStack, space: str, demo: Path) -> ConformanceStack:
    stack = new_stack()
    stack.program(PROGRAM, namespace=space, chart=str(demo))
    return stack


@pytest.fixture(scope="module")
def preview(stack: ConformanceStack) -> Preview:
    return stack.preview()


@pytest.fixture(scope="module")
def state(preview: Preview, stack: ConformanceStack) -> dict[str, Json]:
    assert preview.code == 0, preview.output
    up = stack.up()
    assert up.code == 0, up.output
    return {resource["urn"].rpartition("::")[2]: resource for resource in stack.resources()}


def test_unknowns_in_a_preview(preview: Preview, rows: Rows) -> None:
    rows.is_("an unknown value", {"status": UNKNOWN}, preview.inputs("follows")["data"])
    # provider.go, Create: a preview's object comes from a dry run; helm_release.go, checkpointRelease: status and
    # resourceNames are computed.
    rows.is_("known outputs of new resources", ["uid"], re.findall("known: (\\w+)", preview.diagnostics))
    rows.is_("secrets in a preview", False, "sesame" in preview.output)


def test_names_and_ids(state: dict[str, Json], space: str, rows: Rows) -> None:
    settings = state["settings"]["inputs"]["metadata"]
    rows.matches("an unnamed object", "settings-[0-9a-f]{8}", settings["name"])
    rows.is_("its annotation", {"pulumi.com/autonamed": "true"}, settings["annotations"])
    rows.is_("its id", f"{space}/{settings['name']}", state["settings"]["id"])
    rows.matches("id of an unnamed, cluster-scoped object", "team-[0-9a-f]{8}", state["team"]["id"])
    rows.is_("id of a release", f"{space}/rel", state["rel"]["id"])


def test_inputs(state: dict[str, Json], rows: Rows) -> None:
    rows.is_("inputs always have", ["apiVersion", "data", "kind", "metadata"], sorted(state["settings"]["inputs"]))
    rows.is_("namespace left out", "default", state["homeless"]["inputs"]["metadata"]["namespace"])
    rows.is_("namespace, cluster-scoped", None, state["team"]["inputs"]["metadata"].get("namespace"))
    given = {"kubeconfig", "clusterIdentifier", "version"}
    rows.is_("inputs of the provider", sorted(given), sorted(state["cluster"]["inputs"].keys() - {"__internal"}))
    release = state["rel"]["inputs"]
    options = ("atomic", "skipAwait", "timeout", "version", "waitForJobs")
    expected = {"atomic": False, "skipAwait": False, "timeout": 300, "version": "1.2.3", "waitForJobs": False}
    rows.is_("inputs of a release, completed", expected, {name: release[name] for name in options})


def test_outputs(state: dict[str, Json], space: str, rows: Rows) -> None:
    outputs = state["settings"]["outputs"]
    rows.is_("__inputs", state["settings"]["inputs"], outputs["__inputs"])
    rows.is_("__initialApiVersion", "v1", outputs["__initialApiVersion"])
    rows.matches("__fieldManager", "pulumi-kubernetes-[0-9a-f]{8}", outputs["__fieldManager"])
    rows.is_("the live object", True, "uid" in outputs["metadata"])
    release = state["rel"]["outputs"]
    rows.is_("resourceNames of a release", {"ConfigMap/v1": ["rel"]}, release["resourceNames"])
    status = {"appVersion": "9", "chart": "demo", "name": "rel", "namespace": space, "revision": 1}
    rows.is_("status of a release", status | {"status": "deployed", "version": "1.2.3"}, release["status"])
    rows.is_("__inputs of a release are secret", True, SECRET in release["__inputs"])


def test_secrets(state: dict[str, Json], stack: ConformanceStack, rows: Rows) -> None:
    # provider.go, annotateSecrets: an output is secret if its input is, for each leaf.
    rows.is_("a secret value in a map", True, SECRET in state["half"]["outputs"]["data"]["a"])
    annotations = state["labelled"]["outputs"]["metadata"]["annotations"]
    rows.is_("a secret annotation", True, SECRET in annotations["hidden"])
    rows.is_("a plain one beside it", "plain", annotations["shown"])
    rows.is_("data of a Secret", True, SECRET in state["keys"]["outputs"]["data"])
    rows.is_("data of a Secret, not marked", True, SECRET in state["bare"]["outputs"]["data"])
    kept = "".join(path.read_text() for path in (stack.folder / "state").rglob("*.json"))
    rows.is_("secrets in the state's file", (False, False), ("sesame" in kept, "c2VzYW1l" in kept))


def test_the_next_preview_is_empty(state: dict[str, Json], stack: ConformanceStack, rows: Rows) -> None:
    rows.is_("the next preview", {"same"}, {step["op"] for step in stack.preview().steps})
