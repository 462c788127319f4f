from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from bisection import BAD, GOOD, UNKNOWN, Finding, Group, Outcome, Report, bisect

RAILS = 8
SLOW, NOTHING = Outcome(BAD, 11, 45), Outcome(UNKNOWN, why="no result")
Link = tuple[int, int]
"""Node number and rail."""


def name(number: int) -> str:
    return f"n{number:04d}"


def node(number: int) -> list[Link]:
    return [(number, rail) for rail in range(RAILS)]


@dataclass
class Fabric:
    """A slow part slows each group that uses it; a dead part leaves it without a result."""

    count: int
    slow: Collection[Link] = ()
    slow_rails: Collection[int] = ()
    slow_inside: Collection[int] = ()
    """Nodes that are slow with all GPUs, but not with one."""
    dead: Collection[int] = ()
    dead_links: Collection[Link] = ()
    down: Mapping[tuple[str, int], str] = field(default_factory=dict)
    """Links that are known to be down, by node name, and not measured."""
    together: int = 0
    """Groups of at least this many nodes are slow, like with narrow switches."""
    instead: Mapping[int, Outcome] = field(default_factory=dict)
    """Results by chance, by the measurement's number."""
    rounds: list[Sequence[Group]] = field(default_factory=list)

    def search(self) -> Report:
        report = bisect([name(number) for number in range(self.count)], RAILS, self.measure, self.down)
        assert (report.rounds, report.measurements) == (len(self.rounds), sum(map(len, self.rounds)))
        return report

    def measure(self, groups: Sequence[Group]) -> list[Outcome]:
        """No device is used twice in a round."""
        used = list(itertools.chain.from_iterable(itertools.product(each.nodes, each.rails) for each in groups))
        assert len(used) == len(set(used))
        assert not set(used) & set(self.down)
        before = sum(map(len, self.rounds))
        self.rounds.append(groups)
        return [self.instead.get(before + index) or self._one(group) for index, group in enumerate(groups)]

    def _one(self, group: Group) -> Outcome:
        numbers = [int(each[1:]) for each in group.nodes]
        links = set(itertools.product(numbers, group.rails)) if len(numbers) > 1 else set()
        if set(numbers) & set(self.dead) or links & set(self.dead_links):
            return NOTHING
        slow = links & set(self.slow) or (links and set(group.rails) & set(self.slow_rails))
        inside = len(group.rails) > 1 and set(numbers) & set(self.slow_inside)
        wide = self.together and len(numbers) >= self.together
        return SLOW if slow or inside or wide else Outcome(GOOD, 46, 45)


def short(findings: Sequence[Finding]) -> list[tuple[str, str, int | None, str]]:
    """Returns each finding's kind, node, rail and state."""
    return [(each.kind, each.node, each.rail, each.outcome.state) for each in findings]
