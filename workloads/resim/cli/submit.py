"""Implements `submit` and `retry`, which run a batch's unfinished scenarios."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from workloads.resim.batch import (
    MAX_NAME,
    MOST_SCENARIOS,
    Refused,
    checked_count,
    checked_name,
    default_name,
    digest,
    numbered,
    parse,
)
from workloads.resim.cli.session import Session
from workloads.resim.cli.store import Store
from workloads.resim.manifests import TEST_IO, Batch, job, results_of
from workloads.resim.options import NAME
from workloads.resim.summary import LastRun

_MOST_BYTES = (MOST_SCENARIOS + 1) * (MAX_NAME + 2)


@dataclass(frozen=True)
class Submitted:
    """One run of a batch. If no scenarios remain, it has no Job."""

    batch: str
    run: int
    job: str
    scenarios: int
    left: int

    def lines(self) -> list[str]:
        if not self.job:
            return [f"batch {self.batch}: all {self.scenarios} scenarios are done; nothing was created"]
        to_run = f"batch {self.batch}: {self.left} of {self.scenarios} scenarios to run"
        return [f"job.batch/{self.job} created", f"{to_run}; status: python -m workloads.resim status {self.batch}"]


def scenarios(file: str | None, count: int | None) -> list[str]:
    """Returns the scenarios of a new batch. Raises Refused."""
    if file is None:
        return numbered(checked_count(count or 0))
    return parse(_content(file), file)


def submit(session: Session, names: Sequence[str], *, name: str, template: str, **changes: int | None) -> Submitted:
    """Submits the scenarios of a new batch, or the remaining ones of an existing batch. Raises Refused."""
    batch = checked_name(name or default_name(names))
    if batch == NAME:
        raise Refused(f"{NAME} is the stack's own batch", "another name", f"--name {default_name(names)}")
    with session.store(batch) as kept:
        known = kept.identity()
        template = template or str((known or {}).get("template", TEST_IO))
        made_of = _made_of(session, batch, template, changes)
        if known is None:
            kept.begin(names, template, results_of(made_of))
        else:
            _check_same(batch, names, known)
            _check_made_of(batch, made_of, known)
        return _run(session, kept, made_of, batch, names)


def retry(session: Session, batch: str, *, template: str, **changes: int | None) -> Submitted:
    """Runs the remaining scenarios of an ended batch. Raises Refused."""
    with session.store(batch) as kept:
        names = session.scenarios(batch, kept)
        if batch == NAME:
            fix = f"pulumi up --replace '**:Job::{NAME}'"
            raise Refused(f"{NAME} is the stack's own batch", "a submitted batch", fix)
        template = template or str((kept.identity() or {}).get("template", TEST_IO))
        made_of = _made_of(session, batch, template, changes)
        return _run(session, kept, made_of, batch, names)


def _made_of(session: Session, batch: str, template: str, changes: Mapping[str, int | None]) -> Mapping[str, Any]:
    made_of = {**session.template(template), **{key: value for key, value in changes.items() if value}}
    _check_idle(session, batch)
    _check_lasts(session, made_of)
    return made_of


def _run(session: Session, kept: Store, made_of: Mapping[str, Any], name: str, names: Sequence[str]) -> Submitted:
    done = kept.kept().done
    to_do = [each for each in names if each not in done]
    if not to_do:
        return Submitted(name, 0, "", len(names), 0)
    batch = Batch(name, kept.last_run() + 1)
    kept.begin_run(batch.run, to_do)
    namespace, uid = session.platform.namespace, session.owner
    session.kubectl.create(job(made_of, batch, len(to_do), namespace=namespace, digest=digest(names), uid=uid))
    return Submitted(name, batch.run, batch.job, len(names), len(to_do))


def _check_idle(session: Session, batch: str) -> None:
    run = LastRun.of(session.jobs(batch))
    if not run.ended:
        fix = f"python -m workloads.resim status {batch} --wait, or python -m workloads.resim cancel {batch}"
        raise Refused(f"batch {batch} is still running ({run.name})", "one run of a batch at a time", fix)


def _check_lasts(session: Session, made_of: Mapping[str, Any]) -> None:
    for key in ("inputContainer", "outputContainer"):
        container = session.platform.container(made_of[key])
        container.check_lasts(made_of["hours"], datetime.now(UTC), session.platform.stack)


def _check_same(batch: str, names: Sequence[str], known: Mapping[str, Any]) -> None:
    if known["digest"] != digest(names):
        what = f"batch {batch} was submitted at {known['submitted'][:16]} with other scenarios ({known['scenarios']})"
        allowed = "the same scenarios in the same order, or another name"
        raise Refused(what, allowed, f"--name {default_name(names)}")


def _check_made_of(batch: str, made_of: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    wanted = results_of(made_of)
    if known["madeOf"] != wanted:
        what = f"batch {batch} was submitted with another image, command or dataset than the stack has now"
        allowed = "another name, or the earlier options; `retry` continues the batch with the new options"
        raise Refused(what, allowed, f"--name {batch[: MAX_NAME - 7]}-{wanted[:6]}")


def _content(file: str) -> bytes:
    try:
        with Path(file).open("rb") as stream:
            content = stream.read(_MOST_BYTES + 1)
    except OSError as error:
        what = f"{file} cannot be read: {error.strerror}"
        raise Refused(what, "a text file with one scenario per line", "--scenarios FILE, or --njobs 20") from None
    if len(content) > _MOST_BYTES:
        what = f"{file} is larger than {_MOST_BYTES:,} bytes"
        allowed = f"at most {MOST_SCENARIOS:,} scenarios in a batch"
        raise Refused(what, allowed, f"split -l {MOST_SCENARIOS} {file} part-    # and submit each part")
    return content
