"""Searches the fabric of a pool: reads its nodes, measures, and prints the result.

Usage: search.py FLEET, a file with lines HOST host, LOST host why (launch.sh) and NODE host node ports (links.sh).
Variables: VM_SIZE; POOL; BASELINES, the bus bandwidths in GB/s of one node, two, and more, as JSON; HCAS, the number on
a node; BYTES of a message between whole nodes; and the variables of measure.sh. Exit codes: see report.exit_code.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import report
from bisection import BAD, GOOD, UNKNOWN, Group, Outcome, bisect

MEASURE = Path(__file__).with_name("measure.sh")
AT_ONCE = 64
"""Number of parallel runs of mpirun: eight pairs of nodes on each of eight rails.

A node takes part in one run per rail. From ten connections on, sshd may reject some (MaxStartups).
"""
LIMIT_S = 900
"""Timeout of a measurement, which takes seconds, or minutes over TCP. NCCL may hang if a port goes down."""
BUSBW = re.compile(r"busbw=([0-9.]+) GB/s")


@dataclass
class Fleet:
    """The nodes and their InfiniBand ports."""

    hosts: dict[str, str] = field(default_factory=dict)
    """Hosts to search, by node."""
    ports: tuple[str, ...] = ()
    """InfiniBand ports such as mlx5_0:1; the index is the rail."""
    down: dict[tuple[str, int], str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    """Reasons why nodes are not searched, by node, or by host if the node is unknown."""

    @classmethod
    def read(cls, lines: Iterable[str], hcas: int) -> Fleet:
        """Returns the fleet. Leaves out nodes that have other ports than most nodes: their rails would differ."""
        fleet, hosts, ports_of = cls(), dict[str, str](), dict[str, dict[str, str]]()
        for kind, name, *words in (line.split() for line in lines if line.startswith(("HOST ", "LOST ", "NODE "))):
            if kind == "HOST":
                hosts[name.partition(".")[0]] = name
            elif kind == "LOST":
                fleet.left_out[name] = " ".join(words)
            else:
                fleet.hosts[words[0]] = hosts.pop(name)
                ports_of[words[0]] = dict(sorted((port.split("=") for port in words[1:]), key=_natural))
        fleet.left_out |= dict.fromkeys(hosts.values(), "did not list its HCAs")
        usual = Counter(ports for each in ports_of.values() if len(ports := tuple(each)) == hcas).most_common(1)
        fleet.ports = usual[0][0] if usual else ()
        for node, states in ports_of.items():
            if tuple(states) == fleet.ports:
                numbered = enumerate(states.items())
                fleet.down |= {(node, rail): f"port is {state}" for rail, (_, state) in numbered if state != "ACTIVE"}
            else:
                del fleet.hosts[node]
                fleet.left_out[node] = f"has other InfiniBand ports than most nodes: {', '.join(states) or 'none'}"
        fleet.hosts = dict(sorted(fleet.hosts.items()))  # the order of the scale set
        return fleet


@dataclass(frozen=True)
class Meter:
    """Measures rounds, and prints their outcomes."""

    fleet: Fleet
    floors: Mapping[str, float]
    environment: Mapping[str, str]
    rounds: list[int] = field(default_factory=list)

    def floor(self, group: Group) -> float:
        """Returns the floor in GB/s. Between nodes, each HCA has an equal share. In a node, NVLink has all traffic."""
        if len(group.nodes) == 1:
            return self.floors["one"]
        whole = self.floors["two" if len(group.nodes) == 2 else "many"]
        return whole * len(group.rails) / len(self.fleet.ports)

    def measure(self, groups: Sequence[Group]) -> list[Outcome]:
        """Measures one round."""
        self.rounds.append(len(groups))
        with ThreadPoolExecutor(AT_ONCE) as pool:
            outcomes = list(pool.map(self._one, groups))
        for group, outcome in zip(groups, outcomes, strict=True):
            print(f"round {len(self.rounds)}: {report.described(group, self.fleet.ports, outcome)}", flush=True)
        return outcomes

    def _one(self, group: Group) -> Outcome:
        floor = self.floor(group)
        share = int(self.environment["BYTES"]) * len(group.rails) // len(self.fleet.ports)
        done = subprocess.run(
            [
                *("timeout", "--kill-after=30", str(LIMIT_S), "bash", str(MEASURE)),
                ",".join(map(str, group.rails)),
                "=" + ",".join(self.fleet.ports[rail] for rail in group.rails),
                *(self.fleet.hosts[node] for node in group.nodes),
            ],
            env={**self.environment, "BYTES": str(share), "BUSBW_FLOOR_GBS": f"{floor:g}", "BUSBW_EXPECTED_GBS": ""},
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        return outcome(done.returncode, done.stdout, floor)


def outcome(code: int, printed: str, floor: float) -> Outcome:
    """Returns the outcome of a run of measure.sh."""
    verdict = next((line for line in reversed(printed.splitlines()) if line.startswith("VERDICT: ")), "")
    found = BUSBW.search(verdict)
    state = {0: GOOD, 1: BAD}.get(code, UNKNOWN) if verdict else UNKNOWN
    why = verdict.removeprefix("VERDICT: ").partition(" ")[2].partition("; busbw=")[0]
    if state == UNKNOWN:
        why = why or (f"no result within {LIMIT_S} s" if code == 124 else f"measure.sh ended with exit code {code}")
    slow = state == BAD and "below the floor" in why
    return Outcome(state, float(found[1]) if found else 0.0, floor, "" if slow or state == GOOD else why)


def _natural(port: Sequence[str]) -> list[Any]:
    """Returns a sort key that puts mlx5_10 after mlx5_9."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", port[0])]


def main(arguments: Sequence[str]) -> int:
    """Returns the exit code."""
    baselines = json.loads(os.environ["BASELINES"])
    with Path(arguments[0]).open(encoding="utf-8") as lines:
        fleet = Fleet.read(lines, int(os.environ["HCAS"]))
    if len(fleet.hosts) < 2:
        why = "; ".join(f"{node}: {text}" for node, text in fleet.left_out.items())
        print(f"VERDICT: UNKNOWN fewer than two nodes can be searched ({why})")
        return 2
    meter = Meter(fleet, baselines["floor"], os.environ)
    found = bisect(tuple(fleet.hosts), len(fleet.ports), meter.measure, fleet.down)
    about = {"vmSize": os.environ["VM_SIZE"], "pool": os.environ["POOL"], "baselines": baselines}
    result = report.result(about, tuple(fleet.hosts), fleet.ports, found, fleet.left_out)
    for line in report.lines(result):
        print(line)
    return report.exit_code(result)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
