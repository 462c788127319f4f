"""Implements `status`, which reports a batch from its Jobs and outputs, and `cancel`."""

from __future__ import annotations

import sys
import time

from workloads.resim.batch import Refused
from workloads.resim.cli.session import Session
from workloads.resim.cli.store import Kept
from workloads.resim.manifests import BATCH_LABEL
from workloads.resim.summary import LastRun, Summary, cost, evicted, node_hours, summarised, tried_again

_EVERY_S = 2
_REGION = "topology.kubernetes.io/region"


def wait(session: Session, batch: str) -> LastRun:
    before = ""
    while True:
        run = LastRun.of(session.jobs(batch))
        if not run.name:
            _report(f"the batch has no Job; to run the rest: python -m workloads.resim retry {batch}")
            return run
        now = f"{run.succeeded} of {run.indexes} succeeded, {run.failed} failed, {run.active} running or waiting"
        if now != before:
            _report(now)
        if run.ended:
            return run
        before = now
        time.sleep(_EVERY_S)


def _report(text: str) -> None:
    end = "\r" if sys.stderr.isatty() else "\n"
    print(f"{text:<78}", end=end, file=sys.stderr, flush=True)


def summary(session: Session, batch: str) -> Summary:
    """Returns the summary of a batch from its Jobs and container. Raises Refused if it does not exist."""
    with session.store(batch) as store:
        names = session.scenarios(batch, store)
        kept, run = store.kept(), LastRun.of(session.jobs(batch))
        done = [name for name in names if name in kept.done]
        results = list(store.results(done))
    pools = {arm: (pool.size, pool.spot) for arm, pool in session.platform.pools.items()}
    return summarised(
        batch,
        scenarios=len(names),
        succeeded=len(done),
        run=run,
        evictions=evicted(kept.attempts, _known(session, batch, kept)),
        retried_left=tried_again(kept.attempts, kept.done),
        results=results,
        spent=cost(node_hours(results), pools, _region(session)),
    )


def _known(session: Session, batch: str, kept: Kept) -> set[str]:
    if not kept.attempts:
        return set()
    pods = session.kubectl.list("pods", f"{BATCH_LABEL}={batch}")
    return {pod["metadata"]["name"] for pod in pods if pod.get("status", {}).get("phase") not in ("Failed", "Unknown")}


def _region(session: Session) -> str:
    nodes = session.kubectl.list("nodes")
    return next((node["metadata"]["labels"].get(_REGION, "") for node in nodes), "")


def cancel(session: Session, batch: str) -> list[str]:
    """Deletes a batch's Jobs and returns their names. Finished scenarios stay. Raises Refused if it has no Jobs."""
    jobs = [job["metadata"]["name"] for job in session.jobs(batch)]
    if not jobs:
        allowed = ", ".join(session.batches()) or "a submitted batch"
        raise Refused(f"batch {batch} has no Jobs", allowed, f"kubectl get jobs -L {BATCH_LABEL}")
    session.kubectl.delete("jobs", f"{BATCH_LABEL}={batch}")
    return jobs
