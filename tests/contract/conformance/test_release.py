from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path

import pytest

from simulator.kube.client import KubeClient
from tests.contract.conformance.conftest import NewStack, Rows
from tests.contract.conformance.stack import ConformanceStack, Json

pytestmark = pytest.mark.conformance
SECTION = "Release"
TIMEOUT_SECONDS = 4
DEADLINE = "context deadline exceeded"

PROGRAM = """
for name, arguments in values["releases"].items():
    if "secret" in arguments:
        arguments["values"] = {"size": pulumi.Output.secret(arguments.pop("secret"))}
    k8s.helm.v3.Release(name, name=name, chart=values["chart"], namespace=values["namespace"], opts=options,
        **arguments)
"""
SLOW = {"size": 5, "replicas": 1}  # its Deployment's pods never run
FIRST: Json = {
    "changed": {"values": {"size": 5}},
    "removed": {"values": {"size": 5}},
    "hidden": {"secret": 424242},
    "hasty": {"values": SLOW, "skip_await": True},
    "stuck": {"values": SLOW, "timeout": TIMEOUT_SECONDS},
    "rolled": {"values": {"size": 5}, "atomic": True, "timeout": TIMEOUT_SECONDS},
    "undone": {"values": SLOW, "atomic": True, "timeout": TIMEOUT_SECONDS},
    "pending": {"values": {"size": 5}},
    "broken": {"values": {"size": 5}, "timeout": TIMEOUT_SECONDS},
}
SECOND: Json = FIRST | {
    "changed": {"values": {"size": 6}},
    "hidden": {"secret": 434343},
    "stuck": {"values": {"size": 6}, "timeout": TIMEOUT_SECONDS},
    "rolled": {"values": SLOW | {"size": 6}, "atomic": True, "timeout": TIMEOUT_SECONDS},
    "undone": {"values": {"size": 5}, "atomic": True, "timeout": TIMEOUT_SECONDS},
    "pending": {"values": {"size": 6}},
    "broken": {"values": SLOW | {"size": 6}, "timeout": TIMEOUT_SECONDS},
}
THIRD: Json = {"broken": {"values": {"size": 7}, "timeout": TIMEOUT_SECONDS}}


class ReleasedStack:
    def __init__(self, stack: ConformanceStack, kube: KubeClient, space: str, chart: Path) -> None:
        self.stack, self.kube, self.space, self.chart = stack, kube, space, str(chart)

    def program(self, releases: Json) -> None:
        self.stack.program(PROGRAM, namespace=self.space, chart=self.chart, releases=releases)

    def size(self, name: str) -> str:
        """Returns the value in the cluster."""
        found: str = self.kube.get("v1", "ConfigMap", name, self.space)["data"]["size"]
        return found

    def status(self, name: str) -> str:
        """Returns revision and status in the state."""
        kept = next(item for item in self.stack.resources() if item["urn"].endswith(f"::{name}"))
        return f"{kept['outputs']['status']['revision']} {kept['outputs']['status']['status']}"

    def records(self, name: str) -> list[str]:
        """Returns revisions and statuses in the cluster."""
        secrets = self.kube.list("v1", "Secret", self.space, labels=f"owner=helm,name={name}")
        labels = [secret["metadata"]["labels"] for secret in secrets]
        return sorted(f"{label['version']} {label['status']}" for label in labels)

    def make_pending(self, name: str) -> None:
        """Creates a newer, pending revision, like a killed Helm upgrade."""
        secret = self.kube.get("v1", "Secret", f"sh.helm.release.v1.{name}.v1", self.space)
        record = json.loads(gzip.decompress(base64.b64decode(base64.b64decode(secret["data"]["release"]))))
        record["version"], record["info"]["status"] = 2, "pending-upgrade"
        packed = base64.b64encode(base64.b64encode(gzip.compress(json.dumps(record).encode()))).decode()
        labels = secret["metadata"]["labels"] | {"version": "2", "status": "pending-upgrade"}
        metadata = {"name": f"sh.helm.release.v1.{name}.v2", "namespace": self.space, "labels": labels}
        self.kube.create(
            {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": secret["type"]}
            | {"data": {"release": packed}}
        )


@pytest.fixture(scope="module")
def world(new_stack: NewStack, kube: KubeClient, space: str, demo: Path) -> ReleasedStack:
    """The tests run in order on this stack."""
    return ReleasedStack(new_stack(), kube, space, demo)


def test_the_first_installation(world: ReleasedStack, rows: Rows) -> None:
    world.program(FIRST)
    up = world.stack.pulumi("up", "--yes", "--skip-preview", "--continue-on-error")
    name = f"{world.space}/stuck"
    rows.contains(
        "not ready in time",
        f'Helm release "{name}" was created, but failed to initialize completely. Use Helm CLI to investigate: failed '
        f"to become available within allocated timeout. Error: Helm Release {name}: {DEADLINE}",
        up.output,
    )
    rows.contains("and a warning", 'Helm release "stuck" was created but has a failed status.', up.output)
    rows.is_("it stays in the state", "1 failed", world.status("stuck"))
    # helm_release.go, helmCreate: if Helm has uninstalled it, the plain error, and nothing in the state.
    undone = f"release undone failed, and has been uninstalled due to atomic being set: {DEADLINE}"
    rows.contains("atomic, not ready in time", undone, up.output)
    rows.is_("it leaves nothing", [], world.records("undone"))
    rows.is_("skipAwait", "1 deployed", world.status("hasty"))
    rows.is_("values that hold secrets reach the cluster", "424242", world.size("hidden"))
    kept = "".join(path.read_text() for path in (world.stack.folder / "state").rglob("*.json"))
    rows.is_("and are not in the state's file", False, "424242" in kept)
    assert up.code != 0


def test_the_preview_of_an_upgrade(world: ReleasedStack, rows: Rows) -> None:
    world.program(SECOND)
    preview = world.stack.preview()
    rows.is_("changed values, in preview", "update", preview.operation("changed"))
    rows.is_("changed paths", ["values.size"], preview.changes("changed"))
    rows.is_("an unchanged release, in preview", "same", preview.operation("hasty"))
    rows.is_("a failed release, in preview", "update", preview.operation("stuck"))
    rows.is_("one that was uninstalled, in preview", "create", preview.operation("undone"))
    rows.is_("secret values in a preview", [], [text for text in ("424242", "434343") if text in preview.output])
    world.program(FIRST)
    again = world.stack.preview()
    rows.is_("a failed release that did not change, in preview", "update", again.operation("stuck"))


def test_an_upgrade(world: ReleasedStack, rows: Rows) -> None:
    world.make_pending("pending")
    world.program(SECOND)
    up = world.stack.pulumi("up", "--yes", "--skip-preview", "--continue-on-error")
    rows.is_("changed values", ("6", "2 deployed"), (world.size("changed"), world.status("changed")))
    rows.is_("a failed release is upgraded", ("6", "2 deployed"), (world.size("stuck"), world.status("stuck")))
    busy = "another operation (install/upgrade/rollback) is in progress"
    rows.contains("a release left pending", busy, up.output)
    rows.is_("it does not change", ["1 deployed", "2 pending-upgrade"], world.records("pending"))
    name = f"{world.space}/rolled"
    rows.contains(
        "atomic upgrade, not ready in time",
        f'Helm release "{name}" failed to initialize completely. Use Helm CLI to investigate: failed to become '
        f"available within allocated timeout. Error: Helm Release {name}: release rolled failed, and has been rolled "
        f"back due to atomic being set: {DEADLINE}",
        up.output,
    )
    rows.is_("a failed upgrade", ("6", "2 failed"), (world.size("broken"), world.status("broken")))
    rows.is_("an atomic one is rolled back", "5", world.size("rolled"))
    rows.is_("its revisions", ["1 superseded", "2 failed", "3 deployed"], world.records("rolled"))
    # helm_release.go, helmUpdate: the state has the failed revision, which Helm's upgrade returns.
    rows.is_("its state has the upgrade's revision", "2 failed", world.status("rolled"))
    assert up.code != 0


def test_drift_of_a_release(world: ReleasedStack, rows: Rows) -> None:
    done = world.stack.helm("upgrade", "changed", world.chart, "-n", world.space, "--set", "size=9")
    assert done.code == 0, done.output
    world.stack.helm("uninstall", "removed", "-n", world.space)
    rows.is_("an upgrade by Helm, without a refresh", "same", world.stack.preview().operation("changed"))
    refreshed = world.stack.preview("--refresh")
    # helm_release.go, Read: the latest revision's values override the state's.
    rows.is_("an upgrade by Helm, after a refresh", ["values.size"], refreshed.changes("changed"))
    rows.is_("an uninstalled release, after a refresh", "create", refreshed.operation("removed"))


def test_uninstallation(world: ReleasedStack, rows: Rows) -> None:
    world.program(THIRD)
    up = world.stack.pulumi("up", "--yes", "--skip-preview", "--refresh")
    assert up.code == 0, up.output
    rows.is_("a failed upgrade is repaired", ("7", "3 deployed"), (world.size("broken"), world.status("broken")))
    rows.is_("a removed release is uninstalled", [], world.records("changed"))
    rows.is_("with its objects", None, world.kube.find("v1", "ConfigMap", "changed", world.space))
    rows.is_("so is a pending release", [], world.records("pending"))


def test_uninstallation_of_an_uninstalled_release(world: ReleasedStack, rows: Rows) -> None:
    world.program({"removed": FIRST["removed"]})
    up = world.stack.up()
    assert up.code == 0, up.output
    world.stack.helm("uninstall", "removed", "-n", world.space)
    world.program({})
    # helm_release.go, Delete: Helm's Uninstall, without IgnoreNotFound.
    gone = "uninstall: Release not loaded: removed: release: not found"
    rows.contains("an uninstalled release, without a refresh", gone, world.stack.up().output)
    up = world.stack.pulumi("up", "--yes", "--skip-preview", "--refresh")
    rows.is_("a refresh removes it from the state", 0, up.code)
