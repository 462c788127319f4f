#!/usr/bin/env python3
"""Decides once what becomes of each GPU node that is known to be bad: a CronJob runs it every few minutes.

A check's own pod taints the node that it has found bad (docker/aksnhc/tell-node.sh). This does what no such pod can:
it takes what others have found (Autopilot's label, conditions of the node) for a failed check, and gives jobs their
time. Then it labels such a node for AppWrapper, which reads labels and no taints. In the next round it makes the taint
NoExecute. It takes no taint away: a check that passes does. It also sets how many GPUs the slack queue lends
(slack_queue.py), if SLACK_QUEUE names one. Uses the Kubernetes API with the pod's service account, which needs `list`
and `patch` of nodes, and `get` and `patch` of that queue.
"""

from __future__ import annotations

import os
import sys
import urllib.error
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import slack_queue
from api import CONFLICT, GONE, Object, call

TAINT, FAILED = "aznhc", "failed"
VERDICT, RESULTS = "aznhc-verdict", "aznhc-results"
FAILED_AT, LABELLED = "aznhc-failed", "aznhc-labelled"
"""Annotations: what was found, and with the log, since when the node has the taint, and that its label is from here."""
STAYS, GOES = "NoSchedule", "NoExecute"
LASTS = timedelta(minutes=2)
"""How long a condition must be there: links and drivers come back by themselves."""


@dataclass(frozen=True)
class Rules:
    """What counts, and for how long. Labels are KEY=VALUE."""

    effect: str
    """Of a new taint; with NoExecute jobs get no time."""
    grace: timedelta
    """How long NoSchedule stays before it is NoExecute."""
    bad_labels: tuple[str, ...]
    """By which others say that a node is bad."""
    bad_conditions: tuple[str, ...]
    """Types of conditions that say so where they are True."""
    label: str
    """Of nodes whose jobs have to go."""

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Rules:
        """From the container's variables; lists are separated by commas."""
        return cls(
            effect=environment["TAINT_EFFECT"],
            grace=timedelta(minutes=0 if environment["TAINT_EFFECT"] == GOES else int(environment["GRACE_MINUTES"])),
            bad_labels=tuple(filter(None, environment.get("BAD_LABELS", "").split(","))),
            bad_conditions=tuple(filter(None, environment.get("BAD_CONDITIONS", "").split(","))),
            label=environment["LABEL"],
        )


def change(node: Object, rules: Rules, now: datetime) -> tuple[Object, str]:
    """The merge patch that the node needs, empty for none, and what to say of it."""
    metadata, taints = node["metadata"], node.get("spec", {}).get("taints") or []
    annotations, labels = metadata.get("annotations") or {}, metadata.get("labels") or {}
    effects = {taint["effect"] for taint in taints if taint["key"] == TAINT}
    others = [taint for taint in taints if taint["key"] != TAINT]
    patched: Object = {"annotations": {}, "labels": {}}
    said = []
    wanted = set(effects)
    if not effects and (reason := next(_found_by_others(node, rules, now), "")):
        wanted, verdict = {rules.effect}, f"VERDICT: FAIL {reason}"
        patched["annotations"] |= {VERDICT: verdict, RESULTS: verdict, FAILED_AT: _text(now)}
        said.append(f"has failed: {reason}")
    elif effects and GOES not in effects:
        since = _time(annotations.get(FAILED_AT, ""))
        if since is None:
            since = now
            patched["annotations"][FAILED_AT] = _text(now)
        if now - since >= rules.grace:
            wanted = {GOES}
            said.append(f"has failed {since:%H:%M} UTC, and its jobs have had {rules.grace}")
    if not wanted and FAILED_AT in annotations:
        patched["annotations"][FAILED_AT] = None
        said.append("has no taint any more")
    key, _, value = rules.label.partition("=")
    if GOES in wanted and labels.get(key) != value:
        patched["labels"][key] = value
        patched["annotations"][LABELLED] = "true"
        # AppWrapper moves jobs without using a retry only while their pods still run (appwrapper 1.2.1,
        # internal/controller/appwrapper/appwrapper_controller.go, getPodStatus). It looks once a minute.
        wanted = effects or {STAYS}
    elif GOES not in wanted and LABELLED in annotations:
        patched["labels"][key] = None
        patched["annotations"][LABELLED] = None
        said.append(f"is without {rules.label} again")
    body: Object = {"metadata": {part: values for part, values in patched.items() if values}}
    if wanted != effects:
        own = [{"key": TAINT, "value": FAILED, "effect": effect} for effect in sorted(wanted)]
        body["spec"] = {"taints": [*others, *own]}
        said.append(f"has the taint {TAINT}={FAILED}:{', '.join(sorted(wanted))}")
    if body == {"metadata": {}}:
        return {}, ""
    # A list of taints is replaced whole: what somebody else has changed meanwhile must not be lost.
    body["metadata"]["resourceVersion"] = metadata["resourceVersion"]
    return body, "; ".join(said)


def _found_by_others(node: Object, rules: Rules, now: datetime) -> Iterator[str]:
    labels = node["metadata"].get("labels") or {}
    for label in rules.bad_labels:
        key, _, value = label.partition("=")
        if labels.get(key) == value:
            yield f"label {label}"
    for condition in node.get("status", {}).get("conditions") or []:
        bad = condition["type"] in rules.bad_conditions and condition["status"] == "True"
        since = _time(condition.get("lastTransitionTime", ""))
        if bad and since and now - since >= LASTS:
            yield f"condition {condition['type']}: {condition.get('message', '')}"


def _text(time: datetime) -> str:
    return f"{time:%Y-%m-%dT%H:%M:%SZ}"


def _time(text: str) -> datetime | None:
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError:
        return None


def main() -> int:
    """Runs one round. Returns 1 if the API server refused a change."""
    rules = Rules.of(os.environ)
    selector = urllib.parse.quote(os.environ["NODES"])
    nodes, done = [], True
    for node in call("GET", f"/api/v1/nodes?labelSelector={selector}")["items"]:
        found = _patched(f"/api/v1/nodes/{node['metadata']['name']}", node, *change(node, rules, datetime.now(UTC)))
        nodes.append(found or node)
        done = done and found is not None
    if queue := os.environ.get("SLACK_QUEUE"):
        done = _lends(f"{slack_queue.QUEUES}/{queue}", nodes, rules) and done
    return int(not done)


def _lends(path: str, nodes: list[Object], rules: Rules) -> bool:
    """Sets what the slack queue lends. Returns False if the API server refuses."""
    labels = {*rules.bad_labels, rules.label}
    lost = slack_queue.lost(nodes, slack_queue.Rules.of(os.environ, TAINT, labels), datetime.now(UTC))
    try:
        queue = call("GET", path)
    except urllib.error.HTTPError as error:
        return _passes(path, error)
    return _patched(path, queue, *slack_queue.change(queue, lost)) is not None


def _patched(path: str, found: Object, body: Object, said: str) -> Object | None:
    """Returns the object after the patch, or as it was found if the next round has to do it; None if it is refused."""
    if not body:
        return found
    try:
        found = call("PATCH", path, body)
    except urllib.error.HTTPError as error:
        return found if _passes(path, error) else None
    print(f"{'/'.join(path.split('/')[-2:])} {said}".rstrip(), flush=True)
    return found


def _passes(path: str, error: urllib.error.HTTPError) -> bool:
    """Returns whether the next round takes care of it: the object is gone, or has changed meanwhile. Else logs it."""
    passes = error.code in (CONFLICT, GONE)
    if not passes:
        print(f"ERROR: {path}: {error.code} {error.read().decode(errors='replace')}", file=sys.stderr)
    return passes


if __name__ == "__main__":
    sys.exit(main())
