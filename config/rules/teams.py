"""Rules for teams: their names, their members, and quotas within the cluster's GPUs."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from config.problems.errors import Problem
from config.problems.fixes import Fix, Path, move_command, path_text, remove_command, say, set_command
from config.rules.names import is_taken, namespace_of
from config.schema.models import StackFile
from config.schema.names import MAX_DNS_LABEL
from config.schema.operators import Installation
from config.schema.teams import TeamSettings

SLACK = "slack"
QUEUE_SUFFIX = "-cluster-queue"
MAX_TEAM_NAME = MAX_DNS_LABEL - len(QUEUE_SUFFIX)
"""The limit of a label's value, because labels contain queue names."""
_ALLOWED = (
    f"at most {MAX_TEAM_NAME} lower-case letters, digits and hyphens, a letter or digit at both ends; not the "
    "name of a namespace of the platform, because the team's namespace has the team's name"
)


def team_problems(installation: Installation) -> Iterator[Problem]:
    stack = installation.stack
    of_operators = {each.namespace for each in installation.operators.values()}
    for name, team in stack.teams.items():
        yield from _name_problems(name, team, stack.teams, of_operators)
    yield from _lends_more_than_it_has(stack)
    yield from _groups_without_entra(stack)
    yield from _too_many_gpus(stack)


def _name_problems(
    name: str, team: TeamSettings, teams: Collection[str], of_operators: Collection[str]
) -> Iterator[Problem]:
    path: Path = ("teams", name)
    better = namespace_of(name)[:MAX_TEAM_NAME].rstrip("-")
    if better == name:
        if _is_taken(name, of_operators):
            what = "has the name of a namespace or queue of the platform"
            yield Problem(path, what, _ALLOWED, _renamed(path, team, f"team-{re.sub('-system$', '', name)}", teams))
    elif better in teams:
        what = f"is named {name!r}, but its namespace would be {better}, which belongs to team {better}"
        yield Problem(path, what, "each team once", remove_command(path))
    else:
        better = f"team-{better}".rstrip("-") if not better or _is_taken(better, of_operators) else better
        what = f"is named {name!r}, which is not a valid name for its namespace"
        yield Problem(path, what, _ALLOWED, _renamed(path, team, better, teams))


def _renamed(path: Path, team: TeamSettings, better: str, teams: Collection[str]) -> Fix:
    given = team.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return remove_command(path) if better in teams else move_command(path, ("teams", better), given)


def _lends_more_than_it_has(stack: StackFile) -> Iterator[Problem]:
    for name, team in stack.teams.items():
        if team.lending_limit is not None and team.lending_limit > team.gpus:
            path: Path = ("teams", name, "lendingLimit")
            what = f"is {team.lending_limit}, but the team owns {team.gpus} GPUs"
            yield Problem(path, what, f"0 to {team.gpus}", set_command(path, team.gpus))


def _groups_without_entra(stack: StackFile) -> Iterator[Problem]:
    for name, team in stack.teams.items():
        if team.groups and not stack.cluster.entra:
            path: Path = ("teams", name, "groups")
            what = "names Entra groups, but cluster.entra is false"
            fix = set_command(("cluster", "entra"), True)
            yield Problem(path, what, "cluster.entra true, or no groups", fix)


def _too_many_gpus(stack: StackFile) -> Iterator[Problem]:
    """Yields slackGpus or the largest quota if the sum exceeds the cluster's GPUs. If a lower slackGpus is enough, a
    command sets it. Otherwise, the largest quota is probably mistyped, but the user chooses which team gets less.
    Ignores a cluster without GPU nodes, where nothing runs.
    """
    total, slack = _all_gpus(stack), ("slackGpus",)
    given: dict[Path, int] = {slack: stack.slack_gpus}
    given |= {("teams", name, "gpus"): team.gpus for name, team in sorted(stack.teams.items())}
    if not total or (over := sum(given.values()) - total) <= 0:
        return
    path = slack if given[slack] >= over else max(given, key=given.__getitem__)
    left = max(0, given[path] - over)
    what = f"is {given[path]}, but the other quotas leave {left} of the {total} GPUs that the cluster can have"
    lacking = ("pools",) if stack.pools else ("nodeCount",)
    listed = ", ".join(f"{path_text(where)} ({gpus})" for where, gpus in given.items() if gpus)
    words = say(f"lower one or more of {listed} by {over} in total in the stack file, or add nodes")
    fix = set_command(path, left) if path == slack else words
    yield Problem(path, what, f"0 to {left}, or more nodes", fix, lacking=lacking)


def _all_gpus(stack: StackFile) -> int:
    return sum(pool.max_nodes * pool.gpus for pool in stack.gpu_pools().values())


def quota_table(stack: StackFile) -> str:
    """Returns the quotas for previews; empty without teams."""
    total = _all_gpus(stack)
    rows = [(team.gpus, f"team {name}{_limits(team)}") for name, team in sorted(stack.teams.items())]
    rows += [(stack.slack_gpus, "slack, which teams borrow")] if stack.slack_gpus else []
    left = (total - sum(gpus for gpus, _ in rows), "in no queue: free for more teams, or slackGpus")
    lines = [f"{gpus:>8}  {what}" for gpus, what in (*rows, *([left] if left[0] > 0 else []))]
    return "\n".join([f"quotas, of {total} GPUs that the cluster can have:", *lines]) if rows else ""


def _limits(team: TeamSettings) -> str:
    limits = (("lends", team.lending_limit), ("borrows", team.borrowing_limit))
    return "".join(f", {verb} at most {gpus}" for verb, gpus in limits if gpus is not None)


def _is_taken(name: str, of_operators: Collection[str]) -> bool:
    """Returns whether a name is taken. Namespaces of AKS, its add-ons and operators have the suffix -system."""
    return name == SLACK or name.endswith("-system") or is_taken(name, of_operators)


def reachable_gpus(teams: Mapping[str, TeamSettings], slack: int, name: str) -> int:
    """Returns the most GPUs that a team's jobs can have: its own, slack GPUs, and GPUs that other teams lend."""
    team = teams[name]
    lendable = [
        each.gpus if each.lending_limit is None else each.lending_limit for key, each in teams.items() if key != name
    ]
    borrowed = slack + sum(lendable)
    return team.gpus + (borrowed if team.borrowing_limit is None else min(team.borrowing_limit, borrowed))
