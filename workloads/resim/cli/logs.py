"""`logs` and `cancel`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from workloads.resim.batch import PART, chosen
from workloads.resim.cli.session import Session
from workloads.resim.cli.store import Store
from workloads.resim.manifests import BATCH_LABEL, RUN_LABEL
from workloads.resim.refusal import Refused

_INDEX = "batch.kubernetes.io/job-completion-index"
_JOB = "batch.kubernetes.io/job-name"


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
        store.note_cancelled([pod["metadata"]["name"] for pod in pods if _is_at_work(pod)])


def _is_at_work(pod: Mapping[str, Any]) -> bool:
    return pod.get("status", {}).get("phase") in ("Pending", "Running")


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
