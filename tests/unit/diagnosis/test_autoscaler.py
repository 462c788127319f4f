from __future__ import annotations

from typing import Any

import pytest
import yaml

from diagnosis.cluster import CONFIG_MAP, Kind
from diagnosis.finding import Finding
from diagnosis.report import report
from k8s.objects import Object
from tests.support.case_files import case_table
from tests.unit.diagnosis import objects as make

GROUP = f"aks-{make.POOL}-12345678-vmss"
STATUS = (CONFIG_MAP, {"metadata": {"name": "cluster-autoscaler-status", "namespace": "kube-system", "uid": "status"}})
ADDS = f"the autoscaler adds no node of pool {make.POOL}"
NO_MATCH = "node(s) didn't match Pod's node affinity/selector"
GREW = f"pod triggered scale-up: [{{{GROUP} 0->1 (max: 2)}}]"


def status(text: str = "", *, most: int = 2, target: int = 0, **up: Any) -> tuple[Kind, Object]:
    """Returns the autoscaler's status with one group and the given `scaleUp`, or any text."""
    health = {"maxSize": most, "cloudProviderTarget": target, "nodeCounts": {"registered": {"total": target}}}
    groups = [{"name": GROUP, "health": health, "scaleUp": up or {"status": "NoActivity"}}]
    written = text or yaml.safe_dump({"autoscalerStatus": "Running", "nodeGroups": groups})
    return CONFIG_MAP, {**STATUS[1], "data": {"status": written}}


def found(
    *more: tuple[Kind, Object], added: str = "", refused: str | None = None, later: str = "refused"
) -> list[Finding]:
    pod = make.worker("train-0", unschedulable=f"0/1 nodes are available: 1 {NO_MATCH}.")
    minutes = {"added": 1, "refused": 1} | {later: 5}
    events = []
    if added:
        events.append(make.event(pod, "TriggeredScaleUp", added, f"2026-11-22T10:0{minutes['added']}:00Z"))
    if refused is not None:
        text = f"pod didn't trigger scale-up: {refused}"
        events.append(make.event(pod, "NotTriggerScaleUp", text, f"2026-11-22T10:0{minutes['refused']}:00Z"))
    return list(make.diagnosed(make.job(), pod, *events, *more).findings)


BACKOFF, FULL = "1 in backoff after failed scale-up", "1 max node group size reached"
LATER, UNFIT = (
    f"{ADDS} for now, and tries again within 30 minutes: ",
    f"{ADDS}, since the pod would not fit on a new node",
)
FAILED = f"Scale-up failed for group {GROUP}: no capacity"


TEXTS = {"adds": ADDS, "later": LATER, "unfit": UNFIT, "full": FULL, "backoff": BACKOFF, "no_match": NO_MATCH}


@case_table(__file__, "refusals", pool=make.POOL, **TEXTS)
def test_reports_why_the_autoscaler_adds_no_node(refused: str, known: list[Object], why: str, lasts: bool) -> None:
    (finding,) = found(*(status(**each) for each in known), refused=refused)
    assert (finding.why, finding.lasts, finding.passing) == (why, lasts, False)


def test_shows_a_failed_scale_up_without_a_status() -> None:
    (finding,) = found(make.event(STATUS, "FailedToScaleUpGroup", FAILED), refused=BACKOFF)
    assert (finding.why, finding.lasts) == (f"{LATER}{FAILED}", False)


def test_suggests_the_setting_that_raises_the_maximum() -> None:
    (finding,) = found(refused=FULL)
    assert finding.fix.startswith("pulumi config set --path 'pools.<key>.autoscale.max'")
    kind, node = make.node("a", gpu=0)
    node["metadata"]["labels"]["ai-on-aks/pool"] = "big"
    fixes = [each.fix for each in found((kind, node), refused=FULL)]
    assert "pulumi config set --path 'pools.big.autoscale.max' <nodes>    # then pulumi up" in fixes


@pytest.mark.parametrize(("most", "lasts"), [(1, True), (2, False), (0, None)])
def test_a_gang_larger_than_the_pools_maximum_never_starts(most: int, lasts: bool | None) -> None:
    pods = [make.worker(f"train-{number}") for number in range(2)]
    known = [status(most=most, target=1)] if most else []
    cluster = make.cluster(make.job(), *pods, make.node(f"{GROUP}000000", gpu=8, nics=8), *known)
    (finding,) = [each for each in report(cluster, "ai", "train").findings if "only 1 fit" in each.why]
    assert finding.lasts is bool(lasts)


@pytest.mark.parametrize("later", ["added", "refused"])
def test_uses_the_latest_event_of_the_autoscaler(later: str) -> None:
    first = found(added=GREW, refused=FULL, later=later)[0]
    grows = f"the autoscaler grows pool {make.POOL} from 0 to 1 nodes (max 2)"
    assert (first.why == grows, first.passing) == ((later == "added"),) * 2


def gpu_node(name: str, *, gpu: int = 0, version: str = "v1.35.4") -> tuple[Kind, Object]:
    kind, found = make.node(name, gpu=gpu)
    labels = {"kubernetes.azure.com/accelerator": "nvidia", "kubernetes.azure.com/agentpool": "fixed1234"}
    found["metadata"]["labels"] |= labels | {"ai-on-aks/pool": "fixed"}
    found["status"]["nodeInfo"] = {"kubeletVersion": version}
    return kind, found


@pytest.mark.parametrize(
    ("node", "scaled"),
    [
        (gpu_node("with-gpus", gpu=8), [status()]),
        (gpu_node("old", version="v1.34.1"), [status()]),
        (gpu_node(f"{GROUP}000000"), [status()]),
        (gpu_node("bare"), []),
    ],
    ids=["has GPUs", "an older autoscaler", "of an autoscaled pool", "no autoscaler"],
)
def test_other_nodes_block_no_scale_up(node: tuple[Kind, Object], scaled: list[tuple[Kind, Object]]) -> None:
    assert not [finding for finding in found(*scaled, node) if "to any pool" in finding.why]
