"""`status`: all batches by their Jobs, or one by its outputs, with a summary."""

from __future__ import annotations

import time
from typing import Any

from workloads.resim.cli.session import Session, tell
from workloads.resim.cli.store import EVICTED, FAILED, Kept
from workloads.resim.manifests import BATCH_LABEL
from workloads.resim.summary import Jobs, Summary, cost, evicted, node_hours, summarised, tried_again

_EVERY_S = 2
_REGION = "topology.kubernetes.io/region"


def batches(session: Session) -> list[dict[str, Any]]:
    """Each batch that has Jobs, as its last run stands."""
    by_name: dict[str, list[dict[str, Any]]] = {}
    for job in session.jobs():
        by_name.setdefault(job["metadata"]["labels"][BATCH_LABEL], []).append(job)
    return [_row(name, Jobs.of(jobs)) for name, jobs in sorted(by_name.items())]


def table(rows: list[dict[str, Any]]) -> list[str]:
    """As kubectl lists objects."""
    if not rows:
        return ["No batches found."]
    texts = [[name.upper() for name in rows[0]], *([str(value) for value in row.values()] for row in rows)]
    widths = [max(len(row[column]) for row in texts) for column in range(len(texts[0]))]
    return ["   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in texts]


def wait(session: Session, batch: str) -> Jobs:
    """Until the batch's Jobs have ended, telling how far they are whenever that changes."""
    before = ""
    while True:
        jobs = Jobs.of(session.jobs(batch))
        if not jobs.names:
            tell(f"nothing runs of it any more: python -m workloads.resim retry {batch} goes on")
            return jobs
        now = f"{jobs.succeeded} of {jobs.indexes} succeeded, {jobs.failed} failed, {jobs.active} running or waiting"
        if now != before:
            tell(now)
        if jobs.ended:
            return jobs
        before = now
        time.sleep(_EVERY_S)


def summary(session: Session, batch: str) -> Summary:
    """How a batch fares, by what lies in the container. Raises Refused for one that is not there."""
    with session.store(batch) as store:
        names = session.scenarios(batch, store)
        kept, jobs = store.kept(), Jobs.of(session.jobs(batch))
        done = [name for name in names if name in kept.done]
        results = list(store.results(done, lambda number: _tell(number, len(done))))
    pools = {arm: (pool.size, pool.spot) for arm, pool in session.platform.pools.items()}
    return summarised(
        batch,
        scenarios=len(names),
        succeeded=len(done),
        jobs=jobs,
        evictions=evicted(kept.attempts, _known(session, batch, kept), EVICTED, FAILED),
        retried_left=tried_again(kept.attempts, kept.done),
        results=results,
        spent=cost(node_hours(results), pools, _region(session)),
    )


def _row(name: str, jobs: Jobs) -> dict[str, Any]:
    return {
        "batch": name,
        "state": jobs.state,
        "indexes": jobs.indexes,
        "succeeded": jobs.succeeded,
        "failed": jobs.failed,
        "active": jobs.active,
    }


def _tell(number: int, of: int) -> None:
    if number % 500 == 0:
        tell(f"read {number} of {of} results")


def _known(session: Session, batch: str, kept: Kept) -> set[str]:
    """Pods that are at work, or that have ended well since the blobs were listed."""
    if not kept.attempts:
        return set()
    pods = session.kubectl.list("pods", f"{BATCH_LABEL}={batch}")
    return {pod["metadata"]["name"] for pod in pods if pod.get("status", {}).get("phase") not in ("Failed", "Unknown")}


def _region(session: Session) -> str:
    nodes = session.kubectl.list("nodes")
    return next((node["metadata"]["labels"].get(_REGION, "") for node in nodes), "")
