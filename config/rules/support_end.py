"""Warnings before AKS ends the support of a Kubernetes version, and before it upgrades the cluster.

https://learn.microsoft.com/azure/aks/supported-kubernetes-versions, .../aks/long-term-support and
.../aks/platform-initiated-upgrades.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta

from config.data.scheduling import COSCHEDULER, VOLCANO
from config.data.versions import Kubernetes, versions
from config.problems.errors import Problem
from config.problems.fixes import Fix, say, set_command
from config.schema.models import Settings

NOTICE = timedelta(days=90)
"""The time from the first warning to the end of support. Users need it to plan an upgrade, which reboots every node."""
_PATH = ("cluster", "kubernetesVersion")


def support_warnings(settings: Settings, today: date) -> Iterator[str]:
    if settings.shared_platform is None:
        known = versions().kubernetes
        found = (*_end(settings, known, today), *_patches(settings, known, today))
        yield from (problem.text(settings.stack) for problem in found)


def _end(settings: Settings, known: Kubernetes, today: date) -> Iterator[Problem]:
    cluster = settings.cluster
    end = known.end(cluster.kubernetes_version, lts=cluster.lts)
    if end is None or today < end - NOTICE:
        return
    forced = max(known.platform_upgrades_since, end + timedelta(days=known.platform_upgrade_grace_days))
    verb = "ends" if today <= end else "ended"
    what = (
        f"is {cluster.kubernetes_version}, and its support by AKS {verb} on {end}. From {forced}, AKS may upgrade the "
        "cluster at any time, even while jobs run"
    )
    later = [minor for minor in known.offered(lts=cluster.lts) if (known.end(minor, lts=cluster.lts) or end) > end]
    following = next(iter(later), None)
    if following and settings.operators.scheduler == COSCHEDULER and not versions().coscheduling.supports(following):
        yield _kept_by_scheduler(settings, known, what, following)
    else:
        command = _upgrade_to(following, settings.stack) if following else _upgrade("the next minor version")
        yield Problem(_PATH, what, following or "a newer version", command)


def _kept_by_scheduler(settings: Settings, known: Kubernetes, what: str, following: str) -> Problem:
    """Returns a warning without a command, because each option has a cost."""
    lts_end = known.end(settings.cluster.kubernetes_version, lts=True)
    premium = f", or cluster.tier Premium (support until {lts_end})" if lts_end and not settings.cluster.lts else ""
    allowed = f"{following}, once a newer scheduler-plugins supports it, or with operators.scheduler {VOLCANO}{premium}"
    pinned = versions().charts["scheduler-plugins"].version
    how = say(f"plan an allowed value before that day: scheduler-plugins {pinned} does not support {following}")
    return Problem(_PATH, what, allowed, how)


def _patches(settings: Settings, known: Kubernetes, today: date) -> Iterator[Problem]:
    """Yields a reminder of patches during long-term support. AKS does not install them: `upgradeChannel` is none,
    because upgrades restart nodes while jobs run.
    """
    cluster = settings.cluster
    community = known.end(cluster.kubernetes_version, lts=False)
    if cluster.lts and (community is None or community < today):
        what = f"is {cluster.kubernetes_version}, but long-term support covers only the two newest patches of a version"
        listed = f"az aks get-versions --location {settings.location} --output table"
        yield Problem(_PATH, what, f"the newest patch of `{listed}`", _upgrade("that patch"))


def _upgrade_to(minor: str, stack: str) -> Fix:
    return say(f"while no job runs: {set_command(_PATH, minor).text(stack)} && pulumi up -s {stack}")


def _upgrade(to: str) -> Fix:
    return say(f"while no job runs, set cluster.kubernetesVersion to {to}, and then `pulumi up`")
