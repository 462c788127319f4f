"""What is reported of whole clusters: the tables in `cases/` have their objects and the text, word for word.

An object is made as `objects.py` does, `{worker: train-0, on: a}`, changed by the merge patch under `with`; others are
given whole, under `object`. The report is of workload `train` in namespace `ai`, unless the case has another `of`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from diagnosis.cluster import NODE, POD, Cluster, Kind
from diagnosis.report import Report, platform, report
from k8s.objects import Object
from tests.units.diagnosis import objects as make

BUILDERS: Mapping[str, Callable[..., tuple[Kind, Object]]] = {
    "pod": make.pod,
    "worker": make.worker,
    "driverPod": make.driver_pod,
    "node": make.node,
    "job": make.job,
    "vcjob": make.volcano_job,
    "pytorchjob": make.pytorch_job,
    "appwrapper": make.app_wrapper,
    "daemonSet": make.daemon_set,
    "rayjob": lambda name, **fields: make.ray_job(**fields),
    "clusterPolicy": make.cluster_policy,
    "nicPolicy": make.nic_policy,
    "queued": make.queued,
    "podGroup": make.group,
}
TEMPLATES = {"<worker>": make.worker("x")[1], "<spec of worker>": make.worker("x")[1]["spec"]}
FLAGS = ("lasts", "passing", "shared")
_TABLES = {file.stem: yaml.safe_load(file.read_text("utf-8")) for file in sorted(Path(__file__).parent.glob("cases/*"))}
CASES = {
    f"{topic}: {name}": case for topic, cases in _TABLES.items() for name, case in cases.items() if name != "_shared"
}


def merged(target: Any, patch: Any) -> Any:
    """Returns the target after an RFC 7396 merge patch; texts in it may stand for templates of pods."""
    if isinstance(patch, str) and patch in TEMPLATES:
        return TEMPLATES[patch]
    if isinstance(patch, list):
        return [merged(None, each) for each in patch]
    if not isinstance(patch, dict):
        return patch
    old = target if isinstance(target, dict) else {}
    changed = {key: merged(old.get(key), value) for key, value in patch.items() if value is not None}
    return {key: value for key, value in {**old, **changed}.items() if key not in patch or patch[key] is not None}


def built(entry: Mapping[str, Any], made: Iterable[tuple[str, str, Object]]) -> tuple[str, str, Object]:
    """Returns the API version, the kind and the object of an entry; events are about one of those `made` before."""
    fields = {key: value for key, value in entry.items() if key != "with"}
    what = next(iter(fields))
    name = fields.pop(what)
    if what == "object":
        return name["apiVersion"], name["kind"], name
    if what == "event":
        of, at = fields["of"], {"at": fields["at"]} if "at" in fields else {}
        about = next(
            obj for _, kind, obj in made if of in (obj["metadata"]["name"], f"{kind}/{obj['metadata']['name']}")
        )
        kind, obj = make.event((POD, about), name, fields["says"], **at)
    else:
        waiting = make.waiting(*fields.pop("waiting")) if "waiting" in fields else {}
        kind, obj = BUILDERS[what](name, **fields, **waiting)
    return kind.api_version, kind.name, merged(obj, entry.get("with", {}))


def cluster(entries: Iterable[Mapping[str, Any]], *, volcano: bool = True) -> Cluster:
    """Returns a cluster with these objects, the nodes of pods, and Volcano at work if `volcano`."""
    at_work = map(make.volcano, ("scheduler", "controller")) if volcano else ()
    made = [(kind.api_version, kind.name, obj) for kind, obj in at_work]
    for entry in entries:
        made.append(built(entry, made))
    given = {obj["metadata"]["name"] for _, kind, obj in made if kind == NODE.name}
    on = {obj["spec"].get("nodeName") for _, kind, obj in made if kind == POD.name} - {None, *given}
    nodes = [(NODE.api_version, NODE.name, {"metadata": {"name": name, "uid": name}, "spec": {}}) for name in on]

    def read(kind: Kind, namespace: str) -> list[Object]:
        found = [obj for version, name, obj in (*nodes, *made) if (version, name) == (kind.api_version, kind.name)]
        return [obj for obj in found if namespace in ("", obj["metadata"].get("namespace", ""))]

    return Cluster(read)


def flags(found: Report) -> list[str]:
    """Returns what is known of each finding beside its text; nothing if no finding has any of it."""
    marks = [" ".join(flag for flag in FLAGS if getattr(each, flag)) for each in found.findings]
    return marks if any(marks) else []


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_report_is(case: Mapping[str, Any]) -> None:
    there, of = cluster(case["objects"], volcano=case.get("volcano", True)), case.get("of", "ai/train")
    found = platform(there) if of == "platform" else report(there, *of.split("/", 1))
    assert "\n".join(found.lines()) == case["shows"].rstrip("\n")
    assert flags(found) == case.get("flags", [])
