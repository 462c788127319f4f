"""Pods that wait for nodes: what the autoscaler does, and why no node comes."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from diagnosis.cluster import CONFIG_MAP, Kind, Object
from diagnosis.finding import Finding
from diagnosis.report import report
from tests.units.diagnosis import objects as make

GROUP = f"aks-{make.POOL}-12345678-vmss"
STATUS = (CONFIG_MAP, {"metadata": {"name": "cluster-autoscaler-status", "namespace": "kube-system", "uid": "status"}})
ADDS = f"the autoscaler adds no node of pool {make.POOL}"
NO_MATCH = "node(s) didn't match Pod's node affinity/selector"
GREW = f"pod triggered scale-up: [{{{GROUP} 0->1 (max: 2)}}]"


def status(text: str = "", *, most: int = 2, target: int = 0, **up: Any) -> tuple[Kind, Object]:
    """The autoscaler's status with one group, whose `scaleUp` is given; or any text."""
    health = {"maxSize": most, "cloudProviderTarget": target, "nodeCounts": {"registered": {"total": target}}}
    groups = [{"name": GROUP, "health": health, "scaleUp": up or {"status": "NoActivity"}}]
    written = text or yaml.safe_dump({"autoscalerStatus": "Running", "nodeGroups": groups})
    return CONFIG_MAP, {**STATUS[1], "data": {"status": written}}


def found(
    *more: tuple[Kind, Object], added: str = "", refused: str | None = None, later: str = "refused"
) -> list[Finding]:
    """What is reported of a job with one pod, of which the autoscaler said this."""
    pod = make.worker("train-0", said=f"0/1 nodes are available: 1 {NO_MATCH}.")
    minutes = {"added": 1, "refused": 1} | {later: 5}
    events = []
    if added:
        events.append(make.event(pod, "TriggeredScaleUp", added, f"2026-11-22T10:0{minutes['added']}:00Z"))
    if refused is not None:
        text = f"pod didn't trigger scale-up: {refused}"
        events.append(make.event(pod, "NotTriggerScaleUp", text, f"2026-11-22T10:0{minutes['refused']}:00Z"))
    return list(report(make.cluster(make.job(), pod, *events, *more), "ai", "train").findings)


@pytest.mark.parametrize(
    ("refused", "more", "why", "lasts"),
    [
        (f"1 max node group size reached, 1 {NO_MATCH}", [], f"{ADDS}: the pool has reached its autoscale.max", False),
        (
            f"1 {NO_MATCH}, 1 max node group size reached",
            [status(most=4, target=4)],
            f"{ADDS}: the pool has reached its autoscale.max (4)",
            False,
        ),
        (
            "1 in backoff after failed scale-up",
            [],
            f"{ADDS} for now, and tries again within 30 minutes: a scale-up has failed",
            False,
        ),
        (
            "1 in backoff after failed scale-up",
            [status(status="Backoff", backoffInfo={"errorCode": "AllocationFailed", "errorMessage": "no capacity"})],
            f"{ADDS} for now, and tries again within 30 minutes: pool {make.POOL}: AllocationFailed: no capacity",
            False,
        ),
        (
            "1 in backoff after failed scale-up",
            [status(status="Backoff", backoffInfo={"errorCode": "Over", "errorMessage": "Over: quota of 8 cores"})],
            f"{ADDS} for now, and tries again within 30 minutes: pool {make.POOL}: Over: quota of 8 cores",
            True,
        ),
        (
            "1 in backoff after failed scale-up",
            [make.event(STATUS, "FailedToScaleUpGroup", f"Scale-up failed for group {GROUP}: no capacity")],
            f"{ADDS} for now, and tries again within 30 minutes: Scale-up failed for group {GROUP}: no capacity",
            False,
        ),
        (
            "1 in backoff after failed scale-up, 1 max node group size reached",
            [status(target=2)],
            f"{ADDS}: the pool has reached its autoscale.max (2)",
            False,
        ),
        (
            "1 max node group size reached, 1 Insufficient nvidia.com/gpu",
            [status()],
            f"{ADDS}, since the pod would not fit on it: 1 Insufficient nvidia.com/gpu",
            True,
        ),
        ("1 not ready for scale-up", [], f"{ADDS}: too many nodes of the pool are not ready", False),
        ("max total nodes in cluster reached", [], f"{ADDS}: max total nodes in cluster reached", True),
        ("1 max cluster cpu limit reached", [], f"{ADDS}: 1 max cluster cpu limit reached", True),
        (
            '1 exceeded quota: "team", resources: cpu, memory',
            [],
            f'{ADDS}: 1 exceeded quota: "team", resources: cpu, memory',
            True,
        ),
        (
            f"1 Insufficient nvidia.com/mlnxnics, 2 {NO_MATCH}",
            [status()],
            f"{ADDS}, since the pod would not fit on it: 1 Insufficient nvidia.com/mlnxnics, 2 {NO_MATCH}",
            True,
        ),
        (
            "1 node(s) had untolerated taint {sku: gpu}",
            [],
            f"{ADDS}, since the pod would not fit on it: 1 node(s) had untolerated taint {{sku: gpu}}",
            False,
        ),
        (
            "1 pod has unbound immediate PersistentVolumeClaims",
            [status()],
            f"{ADDS}, since the pod would not fit on it: 1 pod has unbound immediate PersistentVolumeClaims",
            False,
        ),
        ("", [status("Cluster-wide:\n  Health: Healthy\n")], f"{ADDS}, since the pod would not fit on it", False),
    ],
)
def test_why_no_node_comes(refused: str, more: list[tuple[Kind, Object]], why: str, lasts: bool) -> None:
    (finding,) = found(*more, refused=refused)
    assert (finding.why, finding.lasts, finding.passing) == (why, lasts, False)


def test_at_the_largest_size_the_setting_that_raises_it_is_named() -> None:
    (finding,) = found(refused="1 max node group size reached")
    assert finding.fix.startswith("pulumi config set --path 'pools.<key>.autoscale.max'")
    kind, node = make.node("a", gpu=0)
    node["metadata"]["labels"]["ai-on-aks/pool"] = "big"
    fixes = [each.fix for each in found((kind, node), refused="1 max node group size reached")]
    assert "pulumi config set --path 'pools.big.autoscale.max' <nodes>    # then pulumi up" in fixes


@pytest.mark.parametrize(("most", "lasts"), [(1, True), (2, False), (0, None)])
def test_a_gang_that_is_larger_than_its_pool_may_ever_be_never_starts(most: int, lasts: bool | None) -> None:
    pods = [make.worker(f"train-{number}") for number in range(2)]
    known = [status(most=most, target=1)] if most else []
    cluster = make.cluster(make.job(), *pods, make.node(f"{GROUP}000000", gpu=8, nics=8), *known)
    (finding,) = [each for each in report(cluster, "ai", "train").findings if "have room for 1" in each.why]
    assert finding.lasts is bool(lasts)


def test_an_autoscaler_that_pauses_says_so() -> None:
    paused = status(yaml.safe_dump({"clusterWide": {"health": {"status": "Unhealthy"}}}))
    assert found(paused)[0].why == "the autoscaler pauses, since too many nodes of the cluster are not ready"


@pytest.mark.parametrize("later", ["added", "refused"])
def test_what_it_said_last_counts(later: str) -> None:
    first = found(added=GREW, refused="1 max node group size reached", later=later)[0]
    grows = f"the autoscaler grows pool {make.POOL} from 0 to 1 nodes (max 2)"
    assert (first.why == grows, first.passing) == ((later == "added"),) * 2


def test_nodes_that_another_pod_has_asked_for_are_on_their_way_too() -> None:
    first = found(status(target=2, status="InProgress"))
    assert [(each.why, each.passing) for each in first if "autoscaler" in each.why] == [
        (f"the autoscaler grows pool {make.POOL} to 2 nodes", True)
    ]


def test_azure_may_refuse_what_the_autoscaler_has_asked_for() -> None:
    refused = make.event(
        STATUS, "FailedToScaleUpGroup", f"Scale-up failed for group {GROUP}: no capacity", "2026-11-22T10:03:00Z"
    )
    (finding,) = found(refused, added=GREW)
    assert finding.why == (
        f"the autoscaler cannot grow pool {make.POOL} from 0 to 1 nodes (max 2): "
        f"Scale-up failed for group {GROUP}: no capacity"
    )


def test_of_nodes_that_have_come_nothing_is_said_any_more() -> None:
    node = make.node(f"{GROUP}000000", gpu=8, nics=8)
    other = make.worker("olmo-0", "olmo", on=f"{GROUP}000000")
    whys = [each.why for each in found(node, other, added=GREW)]
    assert not [why for why in whys if "autoscaler" in why]
    assert f"nvidia.com/gpu is taken by ai/olmo on node {GROUP}000000" in whys


def test_a_pool_that_does_not_scale_is_no_matter_of_the_autoscalers() -> None:
    other = yaml.safe_dump({"nodeGroups": [{"name": "aks-system-12345678-vmss", "health": {"maxSize": 3}}]})
    assert not [each for each in found(status(other), refused=f"1 {NO_MATCH}") if "autoscaler" in each.why]
