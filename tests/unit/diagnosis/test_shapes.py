from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from diagnosis.cluster import DEPLOYMENT, EVENT, NODE, POD, Cluster, Kind
from diagnosis.report import platform, report
from k8s.objects import Object
from tests.unit.diagnosis import objects
from tests.unit.diagnosis.entries import Made, built


def _one_of_each() -> list[Made]:
    found: list[Made] = []
    for entry in yaml.safe_load(Path(__file__).with_name("one_of_each.yaml").read_text("utf-8")):
        found.append(built(entry, found))
    return found


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in items:
        yield (*path, key)
        yield from _paths(below, (*path, key))


def _changed(obj: Object, path: tuple[Any, ...], value: Any) -> None:
    """Sets the value at the path, or deletes it for `delete`."""
    for key in path[:-1]:
        obj = obj[key]
    if value == "delete":
        del obj[path[-1]]
    else:
        obj[path[-1]] = copy.deepcopy(value)


def _cluster(*given: Made) -> Cluster:
    def read(kind: Kind, namespace: str) -> list[Object]:
        return [obj for of, obj in given if (of.api_version, of.name) == (kind.api_version, kind.name)]

    return Cluster(read)


VALID = _one_of_each()
PLACES = [(index, path) for index, (_, obj) in enumerate(VALID) for path in _paths(obj)]
ODD: st.SearchStrategy[Any] = st.sampled_from(
    ["delete", None, "", "-3", "1k", "text", "9e999", 7, -1, 10**12, 1.5, True, False, [], {}, [None], [1], {"a": None},
     [{}]]
)  # fmt: skip


@given(changes=st.lists(st.tuples(st.sampled_from(PLACES), ODD), min_size=1, max_size=4))
@settings(max_examples=150)
def test_changed_objects_do_not_crash(changes: list[tuple[tuple[int, tuple[Any, ...]], Any]]) -> None:
    objects_now = copy.deepcopy(VALID)
    for (index, path), value in changes:
        try:
            _changed(objects_now[index][1], path, value)
        except (KeyError, TypeError, IndexError):
            continue  # an earlier change removed it
    cluster = _cluster(*objects_now)
    assert platform(cluster).lines()
    for workload in ("train", *(f"train-{letter}" for letter in "vapdrsmwcfb")):
        assert report(cluster, "ai", workload).lines()


@pytest.mark.parametrize("kind", [POD, NODE, EVENT])
def test_an_empty_object_does_not_crash(kind: Kind) -> None:
    empty: list[Object] = [{}, {"metadata": None, "spec": None, "status": None}]
    assert platform(_cluster(*VALID, *((kind, obj) for obj in empty))).lines()


@pytest.mark.parametrize("replicas", [[], "2", None, 10**12])
def test_an_invalid_number_of_replicas_does_not_crash(replicas: Any) -> None:
    spec = {"replicas": replicas, "template": {"spec": {"containers": []}}}
    deployment = {"metadata": {"name": "lab", "uid": "lab", "namespace": "ai"}, "spec": spec, "status": {}}
    assert report(_cluster((DEPLOYMENT, deployment)), "ai", "lab").lines()


def test_an_event_without_a_uid_is_about_the_object_of_its_kind_and_name() -> None:
    about = {"kind": "Pod", "name": "train-0", "namespace": "ai"}
    event: Object = {"metadata": {"namespace": "ai"}, "involvedObject": about, "reason": "x", "message": "y"}
    kind, pod = objects.pod("train-0")
    other, same_name = objects.job("train-0")
    both = (kind, {"kind": "Pod", **pod}), (other, {"kind": "Job", **same_name})
    cluster = _cluster(*both, (EVENT, event))
    assert [len(cluster.events(obj)) for obj in (*cluster.all(kind), *cluster.all(other))] == [1, 0]


def test_owners_and_events_without_a_uid_belong_to_no_object() -> None:
    nameless: Object = {"metadata": {"name": "other", "namespace": "ai", "ownerReferences": [{"name": "x"}]}}
    event: Object = {"metadata": {"namespace": "ai"}, "reason": "FailedMount", "message": "not ours"}
    cluster = _cluster(objects.job(), (POD, nameless), (EVENT, event))
    (pod,) = cluster.all(POD)
    assert not cluster.owned(POD, "ai", [""])
    assert not cluster.events(pod)
