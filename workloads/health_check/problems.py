"""Checks of the health check's options and placement."""

from __future__ import annotations

from collections.abc import Iterator

from config.data.scheduling import VOLCANO
from config.problems.errors import Problem
from config.problems.fixes import Path, either_by_hand, path_text, remove_command, say, set_command
from config.schema.operators import NODE_HEALTH, key_of
from config.schema.pools import agent_pool_name
from config.schema.workload import Candidate
from workloads.health_check.lines import faults, parsed
from workloads.health_check.options import NAME, HealthCheckOptions

_WHERE: Path = ("workloadOptions", NAME)


def problems(options: HealthCheckOptions, candidate: Candidate) -> Iterator[Problem]:
    yield from _nodes(options, candidate)
    for index, line in enumerate(options.checks):
        path = (*_WHERE, "checks", index)
        if (name := parsed(line)[0]) in options.leave_out:
            what = f"is {line!r}, but leaveOut omits {name}"
            yield Problem(path, what, "one of the two", either_by_hand(path, f"remove {name} from leaveOut"))
        for what, allowed in faults(candidate.pool.sku, line):
            yield Problem(path, f"is {line!r}, which {what}", allowed, remove_command(path))
    yield from _idle(options, candidate)
    if options.node_check != "off":
        path = (*_WHERE, "nodeCheck")
        what = f"is {options.node_check}, but workload {NAME} is the check itself"
        yield Problem(path, what, "off", set_command(path, "off"))


def _nodes(options: HealthCheckOptions, candidate: Candidate) -> Iterator[Problem]:
    prefix = f"aks-{agent_pool_name(candidate.pool_key, candidate.pool)}-"
    for index, name in enumerate(options.node_names):
        path = (*_WHERE, "nodeNames", index)
        if not name.startswith(prefix):
            fix = say("kubectl get nodes --selector ai-on-aks/gpu=true    # lists their names")
            what = f"is {name!r}, not a node of pool {candidate.pool_key}"
            yield Problem(path, what, f"names that begin with {prefix}", fix)
        elif name in options.node_names[:index]:
            yield Problem(path, f"is {name!r}, a duplicate", "each node once", remove_command(path))
    if options.node_names and options.num_nodes is not None:
        path = (*_WHERE, "numNodes")
        what = f"is {options.num_nodes}, but nodeNames is set too"
        fix = either_by_hand(path, f"remove {path_text((*_WHERE, 'nodeNames'))}")
        yield Problem(path, what, "one of numNodes and nodeNames", fix)


def _idle(options: HealthCheckOptions, candidate: Candidate) -> Iterator[Problem]:
    if not options.idle_checks:
        return
    if candidate.pool.shares > 1:
        path = (*_WHERE, "idleChecks")
        what = f"is true, but pool {candidate.pool_key} shares its GPUs, and the checks need whole GPUs"
        yield Problem(path, what, "false", set_command(path, False))
    if key_of(NODE_HEALTH) not in candidate.operators:
        enabled: Path = ("operators", key_of(NODE_HEALTH), "enabled")
        what = f"is false, but workload {NAME} has idleChecks, which need this operator to taint bad nodes"
        yield Problem(enabled, what, "true, or idleChecks false", set_command(enabled, True))
    if candidate.scheduler == VOLCANO and not candidate.preempts:
        preemption: Path = ("operators", "volcano", "preemption")
        what = f"is false, but workload {NAME} has idleChecks, and their pods would block jobs"
        yield Problem(preemption, what, "true, or idleChecks false", set_command(preemption, True))
