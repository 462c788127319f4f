from __future__ import annotations

import copy
from typing import Any

import pulumi
import pytest

from operators._lib.manifests import CHECKSUM, Changes, transformed

CONFIG = {"settings": {"config.yaml": "a: 1"}}
POD: dict[str, Any] = {
    "containers": [{"name": "manager", "image": "quay.io/ibm/appwrapper:v1.2.1", "args": ["--fast"]}],
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "serviceAccountName": "manager",
}


def thing(kind: str, name: str, api: str = "v1", **content: Any) -> dict[str, Any]:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": "its"}, **content}


DEPLOYMENT = thing("Deployment", "manager", "apps/v1", spec={"replicas": 1, "template": {"spec": POD}})
RELEASE = [
    thing("Namespace", "its"),
    DEPLOYMENT,
    thing("ConfigMap", "settings", data={"config.yaml": "upstream: true", "more": ""}),
    thing("ConfigMap", "other", data={"left": "alone"}),
    thing("Service", "webhook", spec={"ports": [{"port": 443}]}),
    thing("Secret", "certificate", data={}, type="Opaque"),
]


def found(kind: str, name: str, registry: str | None = None, config: Any = CONFIG) -> dict[str, Any]:
    (one,) = (
        each
        for each in transformed(RELEASE, Changes(config), registry)
        if (each["kind"], each["metadata"]["name"]) == (kind, name)
    )
    return one


def pod(**given: Any) -> dict[str, Any]:
    spec: dict[str, Any] = found("Deployment", "manager", **given)["spec"]["template"]["spec"]
    return spec


def test_keeps_all_other_objects() -> None:
    before = copy.deepcopy(RELEASE)
    made = transformed(RELEASE, Changes(CONFIG), None)
    assert before == RELEASE
    assert [each["metadata"]["name"] for each in made] == ["manager", "settings", "other", "webhook", "certificate"]
    assert found("Service", "webhook") == RELEASE[4]
    assert found("ConfigMap", "other") == RELEASE[3]
    assert found("Deployment", "manager")["spec"]["replicas"] == 1


def test_removes_empty_data_of_a_secret() -> None:
    """With `data: {}`, the official plugin replaces the Secret in every update."""
    assert found("Secret", "certificate") == thing("Secret", "certificate", type="Opaque")


def test_pods_run_on_the_system_pool() -> None:
    assert pod()["nodeSelector"] == {"kubernetes.io/os": "linux", "kubernetes.azure.com/mode": "system"}
    assert pod()["tolerations"] == [{"key": "CriticalAddonsOnly", "operator": "Exists"}]
    assert pod()["serviceAccountName"] == "manager"


def test_images_come_from_the_mirror() -> None:
    (container,) = pod(registry="mirror.example.com/all")["containers"]
    assert container == {
        "name": "manager",
        "image": "mirror.example.com/all/ibm/appwrapper:v1.2.1",
        "args": ["--fast"],
    }
    assert pod()["containers"] == POD["containers"]


def test_another_configuration_restarts_the_operator() -> None:
    assert found("ConfigMap", "settings")["data"] == {"config.yaml": "a: 1"}

    def annotation(config: Any) -> str:
        template = found("Deployment", "manager", config=config)["spec"]["template"]
        text: str = template["metadata"]["annotations"][CHECKSUM]
        return text

    assert annotation(CONFIG) == annotation(copy.deepcopy(CONFIG))
    assert annotation(CONFIG) != annotation({"settings": {"config.yaml": "a: 2"}})


def test_rejects_a_release_without_the_config_map() -> None:
    with pytest.raises(pulumi.RunError, match="no ConfigMap gone"):
        transformed(RELEASE, Changes({"gone": {}}), None)


def test_adds_arguments_after_those_of_the_release() -> None:
    (deployment,) = transformed([DEPLOYMENT], Changes(arguments=["--only=this"]), None)
    template = deployment["spec"]["template"]
    assert template["spec"]["containers"][0]["args"] == ["--fast", "--only=this"]
    assert "metadata" not in template
    assert POD["containers"][0]["args"] == ["--fast"]


def test_resources_override_those_of_the_release() -> None:
    own = {"limits": {"cpu": "2", "memory": "128Mi"}, "requests": {"cpu": "100m"}}
    release = copy.deepcopy(DEPLOYMENT)
    release["spec"]["template"]["spec"]["containers"][0]["resources"] = own
    (deployment,) = transformed([release], Changes(resources={"limits": {"memory": "1Gi"}}), None)
    assert deployment["spec"]["template"]["spec"]["containers"][0]["resources"] == {
        "limits": {"cpu": "2", "memory": "1Gi"},
        "requests": {"cpu": "100m"},
    }
    assert own["limits"]["memory"] == "128Mi"


def test_omits_unwanted_crds_which_must_exist() -> None:
    release = [thing("CustomResourceDefinition", name) for name in ("as.test", "bs.test")]
    assert transformed(release, Changes(without=["as.test"]), None) == release[1:]
    with pytest.raises(pulumi.RunError, match=r"no CustomResourceDefinition cs\.test\. Use the manifests"):
        transformed(release, Changes(without=["cs.test"]), None)
