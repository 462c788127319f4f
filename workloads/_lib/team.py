"""Workloads in a team's namespace and queue: options, checks of the options, and common parts of objects."""

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
from config.schema.workload import Candidate, Member, WorkloadOptions, other_size

LOST: list[dict[str, Any]] = [
    {"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}
    for what in ("not-ready", "unreachable")
]
"""Tolerations that evict pods from a lost node after 30 seconds, instead of Kubernetes' five minutes."""
_SHARE = 0.9
"""The share of a node's CPU and memory for jobs. DaemonSets get the rest."""
QUEUED = {QUEUE_LABEL: LOCAL_QUEUE}
Way = tuple[str, Fix]
WRAPPED = ("runs in an AppWrapper", "appWrapper: false")


def share_of_node(sku: VmSku, gpus: int, *, cpus: int = 0, memory_gib: int = 0) -> dict[str, str]:
    """Returns CPU and memory requests in proportion to the GPUs, like quotas of teams.

    Subtracts `cpus` and `memory_gib`, which the pod's other containers get.
    """
    node, share = allocatable(sku), _SHARE * gpus / sku.gpus
    cpu, memory = int(node.cpu_millis * share / 1000), int(node.memory_kib * share / 2**20)
    return {"cpu": str(max(1, cpu - cpus)), "memory": f"{max(1, memory - memory_gib)}Gi"}


class TeamOptions(WorkloadOptions):
    """Options of a workload that runs as a user of a team."""

    team: Annotated[str | None, EMPTY_IS_UNSET] = None
    """The team of the platform's `teams` that runs it; required."""
    user: Annotated[User | None, EMPTY_IS_UNSET] = None
    """The user of the team who creates the workload; by default the first."""

    @property
    def member(self) -> Member | None:
        """The user who creates the workload, with the team; None without a team."""
        return Member(self.team, self.user) if self.team else None


def name_of(workload: str, prefix: str) -> str:
    """Returns the name of a workload's objects: `prefix` and `workload`, or only `workload` if both are equal."""
    return workload if prefix == f"{workload}-" else f"{prefix}{workload}"


def mark(*made_of: object) -> str:
    return hashlib.sha256(repr([*made_of]).encode()).hexdigest()[:12]


def team_problems(workload: str, options: TeamOptions, candidate: Candidate) -> Iterator[Problem]:
    if not candidate.on_shared_platform:
        what = f"is not set, but workload {workload} runs as a user of a team, on the platform of another stack"
        how = f"move {workload} to another stack, and set platformStack there to the name of the stack with the teams"
        yield Problem(("platformStack",), what, "a stack with teams", say(how))
        return
    if not candidate.teams:
        what = f"is not set, but workload {workload} runs in a team's namespace and Kueue queue"
        how = "add a team with gpus and users in the stack file, and set operators.kueue.enabled to true"
        yield Problem(("teams",), what, "a team with GPUs and users", say(how))
        return
    where: Path = ("workloadOptions", workload)
    team = candidate.teams.get(options.team or "")
    if team is None:
        likely = near(options.team or "", candidate.teams)
        what = f"is {options.team!r}, not a team of the platform{hint(likely)}" if options.team else "is not set"
        fix = set_command((*where, "team"), (likely or sorted(candidate.teams))[0])
        yield Problem((*where, "team"), what, ", ".join(sorted(candidate.teams)), fix, lacking=("teams",))
        return
    yield from _user_problems(where, options, candidate)


def _user_problems(where: Path, options: TeamOptions, candidate: Candidate) -> Iterator[Problem]:
    name = str(options.team)
    users = candidate.teams[name].users
    if not users:
        what = f"is not set, but the workload runs as a user of team {name} (members of its groups are unknown)"
        path: Path = ("teams", name, "users")
        how = f"add a user to {path_text(path)}, such as alice@example.com"
        yield Problem(path, what, "one user or more", say(how))
    elif options.user not in (None, *users):
        likely = near(str(options.user), users)
        what = f"is {options.user!r}, not a user of team {name}{hint(likely)}"
        yield Problem((*where, "user"), what, ", ".join(users), set_command((*where, "user"), (likely or users)[0]))


def most_gpus(options: TeamOptions, candidate: Candidate) -> int | None:
    """Returns the most GPUs that a job of the team can have, or None if the team does not exist."""
    known = options.team in candidate.teams
    return reachable_gpus(candidate.teams, candidate.slack_gpus, str(options.team)) if known else None


def quota_problems(
    workload: str, options: TeamOptions, candidate: Candidate, able: Callable[[int], bool] = lambda gpus: True
) -> Iterator[Problem]:
    """Yields a problem for more GPUs than the team can ever have. `able` returns whether a number of GPUs works."""
    most, per_node = most_gpus(options, candidate), options.gpus_on(candidate.pool.sku)
    wanted = candidate.nodes * per_node
    if most is None or wanted <= most:
        return
    own = candidate.teams[str(options.team)].gpus
    limit = f"can use at most {most}: {own} from its quota, the rest borrowed"
    what = f"requests {wanted} GPUs, but team {options.team} {limit}"
    fewer = next((count for count in range(most // candidate.nodes, 0, -1) if able(count)), 0)
    key, count = ("numNodes", most // per_node) if most >= per_node else ("gpus", fewer)
    if count:
        where: Path = ("workloadOptions", workload, key)
        yield Problem(where, what, f"{key} {count}, or more GPUs for the team", set_command(where, count))
    else:
        path: Path = ("teams", str(options.team), "gpus")
        yield Problem(path, f"is {own}, and the team cannot borrow GPUs", f"{wanted} or more", by_hand(path))


def operator_problems(workload: str, candidate: Candidate, needs: Mapping[str, tuple[str, str]]) -> Iterator[Problem]:
    for key, (why, instead) in needs.items():
        if candidate.on_shared_platform and key not in candidate.operators:
            path: Path = ("operators", key, "enabled")
            what = f"is false, but workload {workload} {why}"
            yield Problem(path, what, f"true, or {instead}", set_command(path, True))


def too_large(where: Path, what: str, ways: Sequence[Way], *, advice: str, smallest: str) -> Problem:
    allowed = "; ".join(text for text, _ in ways) or advice
    fix = ways[0][1] if ways else set_command(where, smallest)
    return Problem(where, what, allowed, fix)


def bf16_sizes() -> list[VmSku]:
    return [size for size in catalogue().values() if size.gpu_bf16_tflops and size.supported]


def other_pool(option: Path, sizes: list[str]) -> Iterator[Way]:
    """Yields other VM sizes as an alternative, without a command, because users should first compare prices."""
    if sizes:
        yield f"a pool of {by_price(sizes)}", by_hand(option)


def scheduler_problems(workload: str, candidate: Candidate) -> Iterator[Problem]:
    if candidate.on_shared_platform and candidate.scheduler != COSCHEDULER:
        where: Path = ("operators", "scheduler")
        what = f"is {candidate.scheduler}, but workload {workload} was only tested with {COSCHEDULER}"
        how = f"use a platform with operators.scheduler {COSCHEDULER}; a change of the scheduler stops all teams' jobs"
        yield Problem(where, what, f"{COSCHEDULER}, or a stack without {workload}", say(how))


def gpu_problems(workload: str, candidate: Candidate) -> Iterator[Problem]:
    sku = candidate.pool.sku
    if not sku.gpu_bf16_tflops:
        where: Path = (*candidate.pool_path, "vmSku")
        usable = [size.name for size in bf16_sizes()]
        what = f"is {sku.name}, but its {sku.gpu_model} does not support bf16, which workload {workload} needs"
        yield other_size(where, what, usable, workload)
    if candidate.pool.shares > 1:
        path: Path = (*candidate.pool_path, "migProfile" if candidate.pool.mig_profile else "gpuSlices")
        what = f"shares each GPU of pool {candidate.pool_key}, but workload {workload} needs whole GPUs"
        fix = either_by_hand(path, f"set {path_text(('workloadOptions', workload, 'pool'))} to a pool of whole GPUs")
        yield Problem(path, what, f"no value, or another pool for {workload}", fix)
