"""KubeRay on the simulator: the release that is made of its module, and how its operator is called."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.facts.versions import INSTALL, versions
from operators import kuberay as program
from simulator.charts import make_schema
from simulator.host import paths
from simulator.kubelet.programs import HostProcess
from simulator.operators import kuberay
from simulator.operators._real import pins
from simulator.operators.kuberay.programs import IMAGE, PROGRAMS
from tests.support.fake_kube import Context, FakeKube

OWN = pins(Path(kuberay.__file__).parent)
PIN = versions().manifests[program.NAME]


@dataclass
class OperatorPod(Context):
    """The pod of the release, whose ports are elsewhere."""

    pod: Any = field(default_factory=lambda: {"metadata": {"name": "kuberay-operator", "namespace": "mlbatch-system"}})

    def argv(self) -> list[str]:
        return ["/manager", "--feature-gates=One=true"]

    def kubeconfig(self) -> str:
        return "/pod/kubeconfig"

    def local_port(self, container_port: int) -> int:
        return 20_000 + container_port


def test_the_operator_has_the_releases_arguments_but_for_where_it_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "tool", lambda name: Path("/tools") / name)
    process = PROGRAMS[0].program
    assert isinstance(process, HostProcess)
    context = OperatorPod(FakeKube()).as_pod_context()
    assert process.argv(context) == [
        *("env", "KUBECONFIG=/pod/kubeconfig", f"/tools/{OWN.tools[0]}", "--feature-gates=One=true"),
        *("--metrics-addr=127.0.0.1:28080", "--health-probe-bind-address=127.0.0.1:28082"),
        *("--leader-election-namespace=mlbatch-system", "--use-kubernetes-proxy"),
    ]
    assert process.ports(context) == {8080: 28080, 8082: 28082}


@pytest.mark.simulator
def test_the_release_that_setting_up_makes_is_what_the_program_knows() -> None:
    text = (make_schema.CHARTS / program.NAME / INSTALL).read_text()
    objects = {(each["kind"], each["metadata"]["name"]): each for each in yaml.load_all(text, yaml.CSafeLoader)}
    crds = {name for kind, name in objects if kind == "CustomResourceDefinition"}
    assert crds == {*program.UNUSED, "rayclusters.ray.io", "rayjobs.ray.io", "rayservices.ray.io"}
    (manager,) = objects["Deployment", "kuberay-operator"]["spec"]["template"]["spec"]["containers"]
    assert manager["image"] == f"quay.io/{IMAGE}:{PIN.version}"
    assert not [each for each in manager["args"] if "scheduler" in each]
    spaces = {each["metadata"].get("namespace", PIN.namespace) for each in objects.values()}
    accounts = {each["namespace"] for one in objects.values() for each in one.get("subjects", [])}
    assert spaces | accounts == {PIN.namespace}
