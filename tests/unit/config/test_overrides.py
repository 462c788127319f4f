"""`podOverrides`: how they are merged, and which are refused."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from config.schema.overrides import merge
from config.schema.workload import WorkloadOptions

ONE, TWO = {"name": "one", "value": "1"}, {"name": "two", "value": "2"}


@pytest.mark.parametrize(
    ("base", "over", "merged"),
    [
        ({"a": {"b": 1, "c": 2}}, {"a": {"c": 3}}, {"a": {"b": 1, "c": 3}}),
        ({"a": 1}, {}, {"a": 1}),
        ({"a": 1, "b": 2}, {"a": None}, {"b": 2}),
        ({}, {"a": {"b": None}}, {"a": {}}),
        ({"env": [ONE, TWO]}, {"env": [{"name": "two", "value": "3"}]}, {"env": [ONE, {"name": "two", "value": "3"}]}),
        ({"env": [ONE]}, {"env": [TWO]}, {"env": [ONE, TWO]}),
        ({"args": ["a", "b"]}, {"args": ["c"]}, {"args": ["c"]}),
        ({"volumeMounts": [{"name": "a", "mountPath": "/a"}]}, {"volumeMounts": [{"name": "b", "mountPath": "/a"}]},
         {"volumeMounts": [{"name": "b", "mountPath": "/a"}]}),
        ({"a": "text"}, {"a": {"b": 1}}, {"a": {"b": 1}}),
    ],
    ids=["deep", "nothing", "null", "null-of-nothing", "by-name", "added", "list", "mounts-by-path", "other-kind"],
)  # fmt: skip
def test_what_is_merged(base: dict[str, Any], over: dict[str, Any], merged: dict[str, Any]) -> None:
    before = repr(base)
    assert merge(base, over) == merged
    assert repr(base) == before


@pytest.mark.parametrize(
    ("overrides", "where", "what"),
    [
        ({"nodeSelector": {}}, ("nodeSelector",), "is not a part of a pod template"),
        ({"spec": "x"}, ("spec",), "is not a map"),
        ({"spec": {"containers": {"a": 1}}}, ("spec", "containers"), "is not a list of maps that each have a name"),
        ({"spec": {"containers": [{"image": "x"}]}}, ("spec", "containers"), "that each have a name"),
        ({"spec": {"containers": [{"name": "x", "volumeMounts": [{"name": "y"}]}]}},
         ("spec", "containers", 0, "volumeMounts"), "that each have a mountPath"),
        ({"spec": {"priorityClas": "low"}}, ("spec", "priorityClas"), "is an unknown key"),
        ({"spec": {"affinity": ["x"]}}, ("spec", "affinity"), "is not a map"),
        ({"spec": {"tolerations": "x"}}, ("spec", "tolerations"), "is not a list"),
        ({"spec": {"tolerations": [{"key": 1}]}}, ("spec", "tolerations", 0, "key"), "is not text"),
        ({"spec": {"hostNetwork": "no"}}, ("spec", "hostNetwork"), "is not true or false"),
        ({"metadata": {"labels": ["a"]}}, ("metadata", "labels"), "is not a map"),
        ({"metadata": {"labels": {"a": 1}}}, ("metadata", "labels", "a"), "is not text"),
        ({"spec": {"containers": [{"name": "x", "resources": {"limits": {"memory": "10GB"}}}]}},
         ("spec", "containers", 0, "resources", "limits", "memory"), "is '10GB'"),
        ({"spec": {"containers": [{"name": "x", "resources": {"requests": {"cpu": "5x"}}}]}},
         ("spec", "containers", 0, "resources", "requests", "cpu"), "is '5x'"),
        ({"spec": {"volumes": [{"name": "shm", "emptyDir": {"sizeLimit": "1 Gi"}}]}},
         ("spec", "volumes", 0, "emptyDir", "sizeLimit"), "is '1 Gi'"),
        ({"spec": {"restartPolicy": "Sometimes"}}, ("spec", "restartPolicy"), "is 'Sometimes'"),
        ({"spec": {"preemptionPolicy": "never"}}, ("spec", "preemptionPolicy"), "is 'never'; near: Never"),
        ({"spec": {"tolerations": [{"operator": "Exits"}]}}, ("spec", "tolerations", 0, "operator"), "near: Exists"),
        ({"spec": {"tolerations": [{"effect": "NoScedule"}]}}, ("spec", "tolerations", 0, "effect"), "NoSchedule"),
        ({"spec": {"containers": [{"name": "x", "ports": [{"containerPort": 80, "protocol": "http"}]}]}},
         ("spec", "containers", 0, "ports", 0, "protocol"), "is 'http'"),
    ],
)  # fmt: skip
def test_what_cannot_be_merged_is_refused(overrides: dict[str, Any], where: tuple[str, ...], what: str) -> None:
    with pytest.raises(ValidationError) as caught:
        WorkloadOptions(pod_overrides=overrides)
    ((fault,),) = (error["ctx"]["faults"] for error in caught.value.errors())
    assert fault.below == where
    assert what in fault.what


def test_all_faults_are_told_with_what_was_meant() -> None:
    container = {"name": "worker", "imagePullPolicy": "always"}
    spec = {"priorityClas": "low", "dnsPolicy": "clusterfirst", "restartPolicy": "Maybe", "containers": [container]}
    with pytest.raises(ValidationError) as caught:
        WorkloadOptions(pod_overrides={"spec": spec})
    (faults,) = (error["ctx"]["faults"] for error in caught.value.errors())
    assert {fault.below[1:]: (fault.what, fault.instead) for fault in faults} == {
        ("priorityClas",): ("is an unknown key", None),
        ("dnsPolicy",): (
            "is 'clusterfirst'; near: ClusterFirst, ClusterFirstWithHostNet",
            "ClusterFirst",
        ),
        ("restartPolicy",): ("is 'Maybe'", None),
        ("containers", 0, "imagePullPolicy"): ("is 'always'; near: Always", "Always"),
    }


@pytest.mark.parametrize(
    "spec",
    [
        {"priorityClassName": "low", "nodeSelector": {"zone": "1"}, "schedulerName": None, "hostNetwork": False},
        {"containers": [{"name": "x", "resources": {"limits": {"cpu": 2, "memory": "1Gi"}}}]},
        {"containers": [{"name": "x", "livenessProbe": {"httpGet": {"port": 80}}}]},
        {"containers": [{"name": "x", "livenessProbe": {"httpGet": {"port": "http"}}}]},
        {"dnsPolicy": "None", "tolerations": [{"operator": "Exists", "effect": ""}]},
        {"volumes": [{"name": "x", "hostPath": {"path": "/", "type": ""}}]},
    ],
    ids=["plain", "quantities", "a-port", "a-name-of-a-port", "choices", "empty-text"],
)
def test_what_kubernetes_takes_is_taken(spec: dict[str, Any]) -> None:
    assert WorkloadOptions(pod_overrides={"spec": spec}).pod_overrides == {"spec": spec}
