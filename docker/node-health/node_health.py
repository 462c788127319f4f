#!/usr/bin/env python3
"""Taints and labels bad GPU nodes. A CronJob runs it every few minutes.

The pod of a failed check taints its node itself (docker/aksnhc/update-node.sh). This program also taints a node if
Autopilot's label or the node's conditions report a problem. After a grace period for jobs, the program labels the node
for AppWrapper, which does not read taints. In the next round, it changes the taint to NoExecute. Only a passing check
removes a taint. If SLACK_QUEUE is set, the program also sets how many GPUs this queue lends (slack_queue.py). The pod's
service account needs `list` and `patch` of nodes, and `get` and `patch` of the queue.
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
"""Annotations: the verdict; the verdict with the log; the time of the taint; whether this program set `Rules.label`."""
STAYS, GOES = "NoSchedule", "NoExecute"
LASTS = timedelta(minutes=2)
"""A condition counts only after this time, because links and drivers may recover without help."""


@dataclass(frozen=True)
class Rules:
    """The signs of a bad node, and its treatment. Labels are KEY=VALUE."""

    effect: str
    """The effect of a new taint. NoExecute evicts jobs without a grace period."""
    grace: timedelta
    """Time until NoSchedule becomes NoExecute."""
    bad_labels: tuple[str, ...]
    """Labels that other programs set on bad nodes."""
    bad_conditions: tuple[str, ...]
    """Types of conditions that are True on bad nodes."""
    label: str
    """The label by which AppWrapper moves the jobs of a node."""

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Rules:
        """Returns the rules in the container's variables. Commas separate lists."""
        return cls(
            effect=environment["TAINT_EFFECT"],
            grace=timedelta(minutes=0 if environment["TAINT_EFFECT"] == GOES else int(environment["GRACE_MINUTES"])),
            bad_labels=tuple(filter(None, environment.get("BAD_LABELS", "").split(","))),
            bad_conditions=tuple(filter(None, environment.get("BAD_CONDITIONS", "").split(","))),
            label=environment["LABEL"],
        )


def change(node: Object, rules: Rules, now: datetime) -> tuple[Object, str]:
    """Returns the node's merge patch and a log line. Both are empty if nothing changes."""
    metadata, taints = node["metadata"], node.get("spec", {}).get("taints") or []
    annotations, labels = metadata.get("annotations") or {}, metadata.get("labels") or {}
    effects = {taint["effect"] for taint in taints if taint["key"] == TAINT}
    others = [taint for taint in taints if taint["key"] != TAINT]
    patched: Object = {"annotations": {}, "labels": {}}
    changes = []
    wanted = set(effects)
    if not effects and (reason := next(_found_by_others(node, rules, now), "")):
        wanted, verdict = {rules.effect}, f"VERDICT: FAIL {reason}"
        patched["annotations"] |= {VERDICT: verdict, RESULTS: verdict, FAILED_AT: _text(now)}
        changes.append(f"has failed: {reason}")
    elif effects and GOES not in effects:
        since = _time(annotations.get(FAILED_AT, ""))
        if since is None:
            since = now
            patched["annotations"][FAILED_AT] = _text(now)
        if now - since >= rules.grace:
            wanted = {GOES}
            changes.append(f"failed at {since:%H:%M} UTC, and the grace period of its jobs, {rules.grace}, has ended")
    if not wanted and FAILED_AT in annotations:
        patched["annotations"][FAILED_AT] = None
        changes.append("no longer has the taint")
    key, _, value = rules.label.partition("=")
    if GOES in wanted and labels.get(key) != value:
        patched["labels"][key] = value
        patched["annotations"][LABELLED] = "true"
        # Sets NoExecute only in the next round. AppWrapper checks the label once a minute, and moves a job without
        # using up a retry only if the job's pods still run (appwrapper 1.2.1,
        # internal/controller/appwrapper/appwrapper_controller.go, getPodStatus).
        wanted = effects or {STAYS}
    elif GOES not in wanted and LABELLED in annotations:
        patched["labels"][key] = None
        patched["annotations"][LABELLED] = None
        changes.append(f"no longer has the label {rules.label}")
    body: Object = {"metadata": {part: values for part, values in patched.items() if values}}
    if wanted != effects:
        own = [{"key": TAINT, "value": FAILED, "effect": effect} for effect in sorted(wanted)]
        body["spec"] = {"taints": [*others, *own]}
        changes.append(f"has the taint {TAINT}={FAILED}:{', '.join(sorted(wanted))}")
    if body == {"metadata": {}}:
        return {}, ""
    # The patch replaces all taints. With resourceVersion, it fails if another program has changed the node.
    body["metadata"]["resourceVersion"] = metadata["resourceVersion"]
    return body, "; ".join(changes)


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
    """Runs one round. Returns 1 if the API server rejected a change."""
    rules = Rules.of(os.environ)
    selector = urllib.parse.quote(os.environ["NODES"])
    nodes, done = [], True
    for node in call("GET", f"/api/v1/nodes?labelSelector={selector}")["items"]:
        found = _patched(f"/api/v1/nodes/{node['metadata']['name']}", node, *change(node, rules, datetime.now(UTC)))
        nodes.append(found or node)
        done = done and found is not None
    if queue := os.environ.get("SLACK_QUEUE"):
        done = _limit_lending(f"{slack_queue.QUEUES}/{queue}", nodes, rules) and done
    return int(not done)


def _limit_lending(path: str, nodes: list[Object], rules: Rules) -> bool:
    labels = {*rules.bad_labels, rules.label}
    lost = slack_queue.lost(nodes, slack_queue.Rules.of(os.environ, TAINT, labels), datetime.now(UTC))
    try:
        queue = call("GET", path)
    except urllib.error.HTTPError as error:
        return _next_round_retries(path, error)
    return _patched(path, queue, *slack_queue.change(queue, lost)) is not None


def _patched(path: str, found: Object, body: Object, changes: str) -> Object | None:
    """Returns the patched object, the old object if the next round retries, or None if the patch is rejected."""
    if not body:
        return found
    try:
        found = call("PATCH", path, body)
    except urllib.error.HTTPError as error:
        return found if _next_round_retries(path, error) else None
    print(f"{'/'.join(path.split('/')[-2:])} {changes}".rstrip(), flush=True)
    return found


def _next_round_retries(path: str, error: urllib.error.HTTPError) -> bool:
    """Returns whether the object was deleted or changed in the meantime. If not, logs the error."""
    if error.code in (CONFLICT, GONE):
        return True
    print(f"ERROR: {path}: {error.code} {error.read().decode(errors='replace')}", file=sys.stderr)
    return False


if __name__ == "__main__":
    sys.exit(main())
