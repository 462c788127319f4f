"""Workloads in the namespace and the queue of a team: their options, what may be wrong with these, their objects."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any

from config.data.allocatable import allocatable
from config.data.near import hint, near
from config.data.prices import by_price
from config.data.scheduling import COSCHEDULER, LOCAL_QUEUE, QUEUE_LABEL
from config.data.skus import VmSku, catalogue
from config.problems.errors import Problem
from config.problems.fixes import Fix, Path, by_hand, either_by_hand, path_text, say, set_command
from config.rules.teams import reachable_gpus
from config.schema.base import EMPTY_IS_UNSET
from config.schema.teams import User
from config.schema.workload import Ground, Member, WorkloadOptions, other_size

LOST: list[dict[str, Any]] = [
    {"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}
    for what in ("not-ready", "unreachable")
]
"""Tolerations: a node that is gone keeps its pod for so long, and not for Kubernetes' five minutes."""
_SHARE = 0.9
"""Of what a node has beside its GPUs: the rest is for DaemonSets."""
QUEUED = {QUEUE_LABEL: LOCAL_QUEUE}
"""Labels of a team's job: teams have one queue."""
Way = tuple[str, Fix]
"""What would do, and the step to it."""
WRAPPED = ("is wrapped", "appWrapper: false")
"""Of a job that needs AppWrapper: why, and what would do without."""


def share_of_node(sku: VmSku, gpus: int, *, cpus: int = 0, memory_gib: int = 0) -> dict[str, str]:
    """Requests of CPU and memory, as large a share of the node as of its GPUs: quotas of teams are in such shares.

    `cpus` and `memory_gib` of it are left to the pod's other containers.
    """
    node, share = allocatable(sku), _SHARE * gpus / sku.gpus
    cpu, memory = int(node.cpu_millis * share / 1000), int(node.memory_kib * share / 2**20)
    return {"cpu": str(max(1, cpu - cpus)), "memory": f"{max(1, memory - memory_gib)}Gi"}


class TeamOptions(WorkloadOptions):
    """Of a workload that runs as a user of a team of the platform."""

    team: Annotated[str | None, EMPTY_IS_UNSET] = None
    """The team in whose namespace it runs, of the platform's `teams`; needed."""
    user: Annotated[User | None, EMPTY_IS_UNSET] = None
    """As which of the team's users it is made; by default the first."""

    @property
    def member(self) -> Member | None:
        """As whom it is made."""
        return Member(self.team, self.user) if self.team else None


def name_of(workload: str, prefix: str) -> str:
    """Of its objects in the team's namespace; `prefix` is its stack's, which may be named as the workload."""
    return workload if prefix == f"{workload}-" else f"{prefix}{workload}"


def mark(*made_of: object) -> str:
    """Of what is made of these values, to tell it in a file's name from what others would make."""
    return hashlib.sha256(repr([*made_of]).encode()).hexdigest()[:12]


def team_problems(workload: str, options: TeamOptions, ground: Ground) -> Iterator[Problem]:
    """What keeps a workload out of a team's queue: no such platform, team or user."""
    if not ground.guest:
        what = f"is not set, and workload {workload} is made as a user of a team, on a platform that is up"
        how = "give it a stack of its own, with platformStack the name of the stack that has the teams"
        yield Problem(("platformStack",), what, "a stack with teams", say(how))
        return
    if not ground.teams:
        what = f"is not set, and workload {workload} runs in a team's namespace and queues there by Kueue"
        how = "give it a team in the stack file, with gpus and users, and with it operators.kueue.enabled true"
        yield Problem(("teams",), what, "a team with GPUs and users", say(how))
        return
    where: Path = ("workloadOptions", workload)
    team = ground.teams.get(options.team or "")
    if team is None:
        likely = near(options.team or "", ground.teams)
        what = f"is {options.team!r}, no team of the platform{hint(likely)}" if options.team else "is not set"
        fix = set_command((*where, "team"), (likely or sorted(ground.teams))[0])
        yield Problem((*where, "team"), what, ", ".join(sorted(ground.teams)), fix, lacking=("teams",))
        return
    yield from _people(where, options, ground)


def _people(where: Path, options: TeamOptions, ground: Ground) -> Iterator[Problem]:
    """Whom to be. Members of groups are nobody by a name that is known here."""
    name = str(options.team)
    users = ground.teams[name].users
    if not users:
        what = f"is not set, and the workload is made as a user of team {name}: of its groups nobody is known by name"
        path: Path = ("teams", name, "users")
        how = f"name somebody in {path_text(path)}, as in alice@example.com"
        yield Problem(path, what, "one user or more", say(how))
    elif options.user not in (None, *users):
        likely = near(str(options.user), users)
        what = f"is {options.user!r}, no user of team {name}{hint(likely)}"
        yield Problem((*where, "user"), what, ", ".join(users), set_command((*where, "user"), (likely or users)[0]))


def most_gpus(options: TeamOptions, ground: Ground) -> int | None:
    """The most that a job of the team can have at once; None without a team of the platform."""
    known = options.team in ground.teams
    return reachable_gpus(ground.teams, ground.slack_gpus, str(options.team)) if known else None


def quota_problems(
    workload: str, options: TeamOptions, ground: Ground, able: Callable[[int], bool] = lambda gpus: True
) -> Iterator[Problem]:
    """More GPUs than the team could ever have would wait for ever. `able` is whether a node's share may be so many."""
    most, per_node = most_gpus(options, ground), options.gpus_on(ground.pool.sku)
    wanted = ground.nodes * per_node
    if most is None or wanted <= most:
        return
    own = ground.teams[str(options.team)].gpus
    what = (
        f"asks for {wanted} GPUs, and team {options.team} can have {most} at most: {own} of its own, the rest borrowed"
    )
    fewer = next((count for count in range(most // ground.nodes, 0, -1) if able(count)), 0)
    key, count = ("numNodes", most // per_node) if most >= per_node else ("gpus", fewer)
    if count:
        where: Path = ("workloadOptions", workload, key)
        yield Problem(where, what, f"{key} {count}, or more GPUs for the team", set_command(where, count))
    else:
        path: Path = ("teams", str(options.team), "gpus")
        yield Problem(path, f"is {own}, and it can borrow none", f"{wanted} or more", by_hand(path))


def operator_problems(workload: str, ground: Ground, needs: Mapping[str, tuple[str, str]]) -> Iterator[Problem]:
    """Operators of the platform that are off: their keys, each with what the workload is, and what would do without."""
    for key, (why, instead) in needs.items():
        if ground.guest and key not in ground.operators:
            path: Path = ("operators", key, "enabled")
            what = f"is false, but workload {workload} {why}"
            yield Problem(path, what, f"true, or {instead}", set_command(path, True))


def too_large(where: Path, what: str, ways: Sequence[Way], *, advice: str, smallest: str) -> Problem:
    """A model that the GPUs cannot hold, and all that would do; where nothing would, `advice` and the smallest one."""
    allowed = "; ".join(text for text, _ in ways) or advice
    fix = ways[0][1] if ways else set_command(where, smallest)
    return Problem(where, what, allowed, fix)


def bf16_sizes() -> list[VmSku]:
    """VM sizes whose GPUs have bf16."""
    return [size for size in catalogue().values() if size.gpu_bf16_tflops and size.supported]


def other_pool(option: Path, sizes: list[str]) -> Iterator[Way]:
    """Yields other VM sizes as a way for a workload, which the user takes: no command does, as most cost more."""
    if sizes:
        yield f"a pool of {by_price(sizes)}", by_hand(option)


def scheduler_problems(workload: str, ground: Ground) -> Iterator[Problem]:
    """With Volcano no such job has been tried."""
    if ground.guest and ground.scheduler != COSCHEDULER:
        where: Path = ("operators", "scheduler")
        what = f"is {ground.scheduler}, and workload {workload} has been tried with {COSCHEDULER} alone"
        how = f"run {workload} on a platform with operators.scheduler {COSCHEDULER}: to switch that of a platform that"
        how += " is up stops the jobs of all its teams"
        yield Problem(where, what, f"{COSCHEDULER}, or a stack without {workload}", say(how))


def gpu_problems(workload: str, ground: Ground) -> Iterator[Problem]:
    """GPUs without bf16, and parts of GPUs."""
    sku = ground.pool.sku
    if not sku.gpu_bf16_tflops:
        where: Path = (*ground.pool_path, "vmSku")
        usable = [size.name for size in bf16_sizes()]
        what = f"is {sku.name}, whose {sku.gpu_model} has no bf16, in which workload {workload} computes"
        yield other_size(where, what, usable, workload)
    if ground.pool.shares > 1:
        path: Path = (*ground.pool_path, "migProfile" if ground.pool.mig_profile else "gpuSlices")
        what = f"shares each GPU of pool {ground.pool_key}, and workload {workload} takes whole ones"
        fix = either_by_hand(path, f"set {path_text(('workloadOptions', workload, 'pool'))} to a pool of whole GPUs")
        yield Problem(path, what, f"no value, or another pool for {workload}", fix)
