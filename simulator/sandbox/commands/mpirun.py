"""`mpirun`: maps ranks to hosts, reaches each host by ssh, and runs the program there for each rank."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from simulator.sandbox.library import mpi_arguments, nccl_tests, programs, ssh_access, view
from simulator.sandbox.library.mpi_arguments import MpiError, Options
from simulator.sandbox.library.ranks import Rank

RULE = "-" * 74


@dataclass(frozen=True)
class Host:
    """A line of the host file. `slots` is 0 if the line does not set it."""

    name: str
    slots: int = 0


def main(arguments: list[str]) -> int:
    try:
        options = mpi_arguments.parse(arguments)
        return _run(options, view.load())
    except MpiError as error:
        print(f"{RULE}\n{error}\n{RULE}", file=sys.stderr)
        return 1


def _run(options: Options, known: view.View) -> int:
    if os.geteuid() == 0 and not options.allow_root:
        raise MpiError("mpirun has detected an attempt to run as root: give --allow-run-as-root to do so.")
    pods = _reach(known, hosts_of(options))
    ranks = place(options, [(pod, host.slots or int(known.node_of(pod)["cpus"])) for pod, host in pods])
    _check_cores(options, ranks, known)
    variables, missing = mpi_arguments.exported(options, os.environ)
    for variable in missing:
        print(f'Warning: could not find environment variable "{variable}"', file=sys.stderr)
    if Path(options.program[0]).name in nccl_tests.PROGRAMS:
        first, code = 0, nccl_tests.run(ranks, list(options.program), variables, known, tag=options.tag_output)
    else:
        first, code = programs.run(ranks, options.program, variables, tag=options.tag_output)
    if code:
        print(_ended(ranks, first, code), file=sys.stderr)
    return code


def hosts_of(options: Options) -> list[Host]:
    """Returns the hosts of --host or the host file. Without both, returns this pod. Raises MpiError."""
    if options.hosts:
        parts = [entry.partition(":") for entry in options.hosts.split(",")]
        return [Host(name, int(slots or 1)) for name, _, slots in parts]
    if not options.hostfile:
        return [Host("localhost")]
    try:
        lines = Path(options.hostfile).read_text().splitlines()
    except OSError as error:
        raise MpiError(f"Open RTE was unable to open the hostfile: {options.hostfile}: {error.strerror}") from error
    hosts = [_host(line) for line in (raw.partition("#")[0].split() for raw in lines) if line]
    if not hosts:
        raise MpiError(f"The hostfile {options.hostfile} names no host.")
    return hosts


def place(options: Options, pods: list[tuple[view.Pod, int]]) -> list[Rank]:
    """Returns the ranks in order. `pods` are pods with their slots. Raises MpiError if the ranks do not fit."""
    total = sum(slots for _, slots in pods)
    limits = [options.per_node if options.map_by == "ppr" else slots for _, slots in pods]
    np = options.np or sum(limits)
    if np > total and not options.oversubscribe:
        raise MpiError(
            f"There are not enough slots available in the system to satisfy the {np} slots that were requested "
            f"by {options.program[0]}: the hosts have {total}."
        )
    if np > sum(limits) and options.map_by == "ppr":
        raise MpiError(
            f"{np} processes were asked for, but the mapping allows {options.per_node} on each of {len(pods)} nodes."
        )
    counts = _counts(np, limits, by_node=options.map_by == "node")
    placed = [(pod, local, count) for (pod, _), count in zip(pods, counts, strict=True) for local in range(count)]
    if options.rank_by == "node":
        placed.sort(key=lambda rank: rank[1])
    return [Rank(pod, local, count, number) for number, (pod, local, count) in enumerate(placed)]


def _host(words: list[str]) -> Host:
    settings = dict(word.partition("=")[::2] for word in words[1:])
    slots = settings.get("slots", "0")
    if not slots.isdigit():
        raise MpiError(f"The hostfile entry of {words[0]} has slots={slots}, which is not a number.")
    return Host(words[0], int(slots))


def _counts(np: int, limits: list[int], *, by_node: bool) -> list[int]:
    counts = [0] * len(limits)
    if by_node:
        for rank in range(np):
            counts[rank % len(limits)] += 1
        return counts
    for index, limit in enumerate(limits):
        counts[index] = min(limit, np - sum(counts))
    counts[0] += np - sum(counts)  # with --oversubscribe, the first host gets the rest
    return counts


def _reach(known: view.View, hosts: Iterable[Host]) -> list[tuple[view.Pod, Host]]:
    """Returns the hosts' pods if ssh reaches all. Otherwise prints the errors of ssh and raises MpiError.

    The message is the first sentence of Open MPI's text, without a host (4.1,
    orte/mca/errmgr/base/help-errmgr-base.txt, failed-daemon-launch).
    """
    reached, failed = [], False
    for host in hosts:
        try:
            own = known.resolve(host.name) is known.me
            reached.append((known.me if own else ssh_access.connect(known, host.name, {}), host))
        except ssh_access.SshError as error:
            print(error, file=sys.stderr)
            failed = True
    if failed:
        raise MpiError("ORTE was unable to reliably start one or more daemons.")
    return reached


def _check_cores(options: Options, ranks: Iterable[Rank], known: view.View) -> None:
    for rank in ranks:
        cpus = int(known.node_of(rank.pod)["cpus"])
        if options.bind_to != "none" and options.cores * rank.of_local > cpus and not options.oversubscribe:
            raise MpiError(
                f"A request was made to bind to that would result in binding more processes than cpus on a resource: "
                f"{rank.of_local} processes of {options.cores} cores on {rank.pod.hostname}, which has {cpus}."
            )


def _ended(ranks: list[Rank], first: int, code: int) -> str:
    return (
        f"{RULE}\nmpirun detected that one or more processes exited with non-zero status, and ended the job.\n"
        f"The first process to do so was:\n\n  Process name: [[{40000 + len(ranks)},1],{first}]\n"
        f"  Exit code:    {code}\n{RULE}"
    )
