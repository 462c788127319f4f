"""How a batch fares: from its Jobs, and from what lies in the output container. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from config.facts.prices import price_list
from workloads.resim.batch import intervals
from workloads.resim.manifests import RUN_LABEL

_MB, _HOUR = 1e6, 3600
_UNITS = ("B", "kB", "MB", "GB", "TB")


@dataclass(frozen=True)
class Jobs:
    """The Jobs of a batch's last run that are there."""

    names: tuple[str, ...] = ()
    active: int = 0
    succeeded: int = 0
    failed: int = 0
    """Indexes."""
    indexes: int = 0
    ended: bool = True
    reasons: tuple[str, ...] = ()
    """Why Jobs failed, as Kubernetes says."""

    @classmethod
    def of(cls, objects: Iterable[Mapping[str, Any]]) -> Jobs:
        """From Jobs of one batch."""
        by_run: dict[int, list[Mapping[str, Any]]] = {}
        for each in objects:
            by_run.setdefault(int(each["metadata"]["labels"][RUN_LABEL]), []).append(each)
        if not by_run:
            return cls()
        last = by_run[max(by_run)]
        statuses = [each.get("status", {}) for each in last]
        ends = [[c for c in status.get("conditions") or [] if c["status"] == "True"] for status in statuses]
        final = [next((c for c in found if c["type"] in ("Complete", "Failed")), None) for found in ends]
        return cls(
            names=tuple(each["metadata"]["name"] for each in last),
            active=sum(status.get("active", 0) for status in statuses),
            succeeded=sum(status.get("succeeded", 0) for status in statuses),
            failed=sum(len(r) for status in statuses for r in intervals(status.get("failedIndexes", ""))),
            indexes=sum(each["spec"]["completions"] for each in last),
            ended=all(final),
            reasons=tuple(
                f"{c.get('reason', '')}: {c.get('message', '')}" for c in final if c and c["type"] == "Failed"
            ),
        )

    @property
    def state(self) -> str:
        """In a word."""
        if not self.names:
            return "Stopped"
        if not self.ended:
            return "Running"
        return "Failed" if self.reasons else "Complete"


@dataclass(frozen=True)
class Cost:
    """What the nodes of a batch have cost while they worked on it."""

    usd: float | None
    """None where a price is unknown."""
    at_most: bool = False
    """Spot nodes cost what the market says: at most the list price."""


@dataclass(frozen=True)
class Summary:
    """A batch in numbers."""

    batch: str
    state: str
    scenarios: int
    succeeded: int
    failed: int
    running: int
    evicted: int
    """Attempts that were told to end, or that are gone, but for those that were cancelled."""
    retried: int
    """Scenarios that took more than one attempt."""
    input_bytes: int
    output_bytes: int
    seconds: float
    """From the first beginning to the last end of scenarios that are done."""
    scenario_seconds: float
    """What these took, each by itself: their work."""
    node_hours: float
    cost: Cost
    reasons: tuple[str, ...] = ()

    @property
    def throughput(self) -> float:
        """Bytes a second, of inputs and outputs."""
        return (self.input_bytes + self.output_bytes) / self.seconds if self.seconds else 0.0

    @property
    def at_once(self) -> float:
        """Scenarios at work together, on average."""
        return self.scenario_seconds / self.seconds if self.seconds else 0.0

    def document(self) -> dict[str, Any]:
        """For programs."""
        return {
            "batch": self.batch,
            "state": self.state,
            "scenarios": self.scenarios,
            "succeeded": self.succeeded,
            "failed": self.failed,
            "running": self.running,
            "left": self.scenarios - self.succeeded,
            "evicted": self.evicted,
            "retried": self.retried,
            "inputBytes": self.input_bytes,
            "outputBytes": self.output_bytes,
            "seconds": self.seconds,
            "scenarioSeconds": self.scenario_seconds,
            "bytesPerSecond": round(self.throughput, 1),
            "nodeHours": round(self.node_hours, 4),
            "cost": {"usd": self.cost.usd, "atMost": self.cost.at_most},
            "reasons": list(self.reasons),
        }

    def lines(self) -> list[str]:
        """For readers, in kubectl's way of describing."""
        rows = {
            "Batch": self.batch,
            "State": self.state,
            "Scenarios": f"{self.scenarios}: {self.succeeded} succeeded, {self.failed} failed, {self.running} running",
            "Attempts": f"{self.evicted} evicted, {self.retried} scenarios retried",
            "Bytes": f"{_bytes(self.input_bytes)} read, {_bytes(self.output_bytes)} written",
            "Throughput": f"{self.throughput / _MB:.1f} MB/s over {self.seconds:.0f} s",
            "Work": f"{self.scenario_seconds:.0f} s of scenarios, {self.at_once:.1f} at once on average",
            "Node hours": f"{self.node_hours:.2f}",
            "Cost": _money(self.cost),
        }
        return [f"{f'{name}:':<12}{value}" for name, value in rows.items()] + [f"  {why}" for why in self.reasons]


def node_hours(results: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Hours in which each node worked on any scenario; scenarios that share a node count once."""
    spans: dict[str, list[tuple[float, float]]] = {}
    for each in results:
        spans.setdefault(each["node"], []).append((each["started"], each["ended"]))
    return {node: _covered(found) / _HOUR for node, found in spans.items()}


def _covered(spans: Iterable[tuple[float, float]]) -> float:
    total, end = 0.0, float("-inf")
    for start, stop in sorted(spans):
        total += max(0.0, stop - max(start, end))
        end = max(end, stop)
    return total


def cost(hours: Mapping[str, float], pools: Mapping[str, tuple[str, bool]], region: str) -> Cost:
    """Of nodes by name; `pools` have size and whether they are Spot, by the ARM name that nodes carry in theirs."""
    total, spot = 0.0, False
    for node, spent in hours.items():
        size, is_spot = next((found for arm, found in pools.items() if node.startswith(f"aks-{arm}-")), ("", False))
        price = price_list().node(size, region)
        if price is None:
            return Cost(None)
        total, spot = total + price * spent, spot or is_spot
    return Cost(round(total, 4), spot)


def evicted(attempts: Mapping[tuple[str, str], Collection[str]], known: Collection[str], mark: str, failed: str) -> int:
    """Attempts that bear the mark, and those that bear none and whose pods are gone, or ended before they could."""
    return sum(mark in files or (failed not in files and pod not in known) for (_, pod), files in attempts.items())


def tried_again(attempts: Iterable[tuple[str, str]], done: Collection[str]) -> int:
    """Scenarios that are not done and have had several attempts, by scenario and pod."""
    tried = Counter(scenario for scenario, _ in attempts if scenario not in done)
    return sum(count > 1 for count in tried.values())


def summarised(
    batch: str,
    *,
    scenarios: int,
    succeeded: int,
    jobs: Jobs,
    evictions: int,
    retried_left: int,
    results: Sequence[Mapping[str, Any]],
    spent: Cost,
) -> Summary:
    """All of it."""
    begun = min((each["started"] for each in results), default=0)
    ended = max((each["ended"] for each in results), default=0)
    return Summary(
        batch=batch,
        state=jobs.state,
        scenarios=scenarios,
        succeeded=succeeded,
        failed=jobs.failed,
        running=min(jobs.active, scenarios - succeeded),  # outputs are there before Kubernetes sees their pods' end
        evicted=evictions,
        retried=sum(each["attempts"] > 1 for each in results) + retried_left,
        input_bytes=sum(each.get("inputBytes", 0) for each in results),
        output_bytes=sum(each["outputBytes"] for each in results),
        seconds=float(ended - begun),
        scenario_seconds=float(sum(each["ended"] - each["started"] for each in results)),
        node_hours=sum(node_hours(results).values()),
        cost=spent,
        reasons=jobs.reasons,
    )


def _bytes(count: float) -> str:
    unit = 0
    while count >= 1000 and unit < len(_UNITS) - 1:
        count, unit = count / 1000, unit + 1
    return f"{count:.1f} {_UNITS[unit]}" if unit else f"{count:.0f} B"


def _money(spent: Cost) -> str:
    if spent.usd is None:
        return "unknown: no list price of the nodes' VM size"
    return f"{'at most ' if spent.at_most else ''}${spent.usd:,.2f}, by Azure's list prices"
