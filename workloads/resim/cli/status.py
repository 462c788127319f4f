"""`status`: all batches by their Jobs, or one by its outputs, with a summary; `logs` and `cancel`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from workloads.resim.batch import PART, Refused, chosen
from workloads.resim.cli.session import Session, tell
from workloads.resim.cli.store import EVICTED, FAILED, Kept, Store
from workloads.resim.manifests import BATCH_LABEL, RUN_LABEL
from workloads.resim.summary import Jobs, Summary, cost, evicted, node_hours, summarised, tried_again

_EVERY_S = 2
_REGION = "topology.kubernetes.io/region"
_INDEX = "batch.kubernetes.io/job-completion-index"
_JOB = "batch.kubernetes.io/job-name"


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


def logs(session: Session, batch: str, pattern: str) -> Iterator[str]:
    """Those of the scenarios that a pattern means: from beside their outputs, or of a pod that runs. Raises Refused."""
    with session.store(batch) as store:
        names = session.scenarios(batch, store)
        wanted = chosen(names, pattern)
        kept = store.kept()
        for scenario in wanted:
            if len(wanted) > 1:
                yield f"==> {scenario} <=="
            text = store.log(scenario, kept)
            yield (text if text is not None else _of_pod(session, batch, scenario, names, store)).rstrip("\n")


def cancel(session: Session, batch: str, says: Callable[[list[str]], None]) -> None:
    """Takes a batch's Jobs away, and says which; what is done stays. Raises Refused where there are none."""
    jobs = [job["metadata"]["name"] for job in session.jobs(batch)]
    if not jobs:
        there = sorted({job["metadata"]["labels"][BATCH_LABEL] for job in session.jobs()})
        what = f"there is no batch {batch} with Jobs"
        raise Refused(what, ", ".join(there) or "a batch that was submitted", "python -m workloads.resim status")
    pods = session.kubectl.list("pods", f"{BATCH_LABEL}={batch}")
    session.kubectl.delete("jobs", f"{BATCH_LABEL}={batch}")
    says(jobs)
    with session.store(batch) as store:  # last: one whose SAS has ended is cancelled too
        at_work = [pod for pod in pods if pod.get("status", {}).get("phase") in ("Pending", "Running")]
        store.note_cancelled([pod["metadata"]["name"] for pod in at_work])


def _of_pod(session: Session, batch: str, scenario: str, names: list[str], store: Store) -> str:
    """Of the pod that runs it in the last run."""
    jobs = session.jobs(batch)
    run = max((int(job["metadata"]["labels"][RUN_LABEL]) for job in jobs), default=-1)
    listed = names if run == 0 else store.run(run)
    if run < 0 or scenario not in listed:
        return "it has not run yet"
    part, index = divmod(listed.index(scenario), PART)
    last: list[dict[str, Any]] = [job for job in jobs if job["metadata"]["labels"][RUN_LABEL] == str(run)]
    job = sorted((each["metadata"]["name"] for each in last), key=lambda name: (len(name), name))[part]
    return session.kubectl.log(f"{_JOB}={job},{_INDEX}={index}") or "it has not run yet"
