"""Summarizes a batch from its Jobs and the output container."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pydantic.alias_generators import to_camel

from config.data.prices import price_list
from workloads.resim.manifests import RUN_LABEL

FAILED = "FAILED"
_MB, _HOUR = 1e6, 3600
_UNITS = ("B", "kB", "MB", "GB", "TB")


@dataclass(frozen=True)
class LastRun:
    """The Job of a batch's last run."""

    name: str = ""
    active: int = 0
    succeeded: int = 0
    failed: int = 0
    indexes: int = 0
    ended: bool = True
    reason: str = ""

    @classmethod
    def of(cls, jobs: Iterable[Mapping[str, Any]]) -> LastRun:
        job = max(jobs, key=lambda each: int(each["metadata"]["labels"][RUN_LABEL]), default=None)
        if job is None:
            return cls()
        status = job.get("status", {})
        true = {each["type"]: each for each in status.get("conditions") or [] if each["status"] == "True"}
        why = true.get("Failed")
        return cls(
            name=job["metadata"]["name"],
            active=status.get("active", 0),
            succeeded=status.get("succeeded", 0),
            failed=_count(status.get("failedIndexes", "")),
            indexes=job["spec"]["completions"],
            ended=bool(true.keys() & {"Complete", "Failed"}),
            reason=f"{why.get('reason', '')}: {why.get('message', '')}" if why else "",
        )

    @property
    def state(self) -> str:
        if not self.name:
            return "Stopped"
        if not self.ended:
            return "Running"
        return "Failed" if self.reason else "Complete"


@dataclass(frozen=True)
class Cost:
    """The cost of nodes while they worked on a batch."""

    usd: float | None
    at_most: bool = False
    """Whether `usd` is an upper limit: Spot nodes cost the market price, at most the list price."""


@dataclass(frozen=True)
class Summary:
    batch: str
    state: str
    scenarios: int
    succeeded: int
    failed: int
    running: int
    evicted: int
    """The number of attempts that an eviction, a lost node or `cancel` has ended."""
    retried: int
    input_bytes: int
    output_bytes: int
    seconds: float
    """Seconds from the first start to the last end of finished scenarios."""
    scenario_seconds: float
    """The seconds of all finished scenarios together."""
    node_hours: float
    cost: Cost
    reason: str = ""

    @property
    def throughput(self) -> float:
        return (self.input_bytes + self.output_bytes) / self.seconds if self.seconds else 0.0

    @property
    def at_once(self) -> float:
        return self.scenario_seconds / self.seconds if self.seconds else 0.0

    def document(self) -> dict[str, Any]:
        derived = {
            "left": self.scenarios - self.succeeded,
            "bytesPerSecond": round(self.throughput, 1),
            "cost": {"usd": self.cost.usd, "atMost": self.cost.at_most},
        }
        return {to_camel(name): value for name, value in asdict(self).items()} | derived

    def lines(self) -> list[str]:
        rows = {
            "Batch": self.batch,
            "State": self.state,
            "Scenarios": f"{self.scenarios}: {self.succeeded} succeeded, {self.failed} failed, {self.running} running",
            "Attempts": f"{self.evicted} evicted, {self.retried} scenarios retried",
            "Bytes": f"{_bytes(self.input_bytes)} read, {_bytes(self.output_bytes)} written",
            "Throughput": f"{self.throughput / _MB:.1f} MB/s over {self.seconds:.0f} s",
            "Work": f"{self.scenario_seconds:.0f} s of scenarios, {self.at_once:.1f} in parallel on average",
            "Node hours": f"{self.node_hours:.2f}",
            "Cost": _money(self.cost),
        }
        return [f"{f'{name}:':<12}{value}" for name, value in rows.items()] + (
            [f"  {self.reason}"] if self.reason else []
        )


def _count(indexes: str) -> int:
    pairs = (part.partition("-") for part in indexes.split(",") if part)
    return sum(int(last or first) - int(first) + 1 for first, _, last in pairs)


def node_hours(results: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Returns the hours in which each node ran scenarios. Hours with parallel scenarios count once."""
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
    """Returns the cost of the node hours. `pools` has each pool's VM size and whether it is Spot, by ARM name."""
    total, spot = 0.0, False
    for node, spent in hours.items():
        size, is_spot = next((found for arm, found in pools.items() if node.startswith(f"aks-{arm}-")), ("", False))
        price = price_list().node(size, region)
        if price is None:
            return Cost(None)
        total, spot = total + price * spent, spot or is_spot
    return Cost(round(total, 4), spot)


def evicted(attempts: Mapping[tuple[str, str], Collection[str]], known: Collection[str]) -> int:
    """Returns the number of attempts with neither success nor failure whose pods are not in `known`."""
    return sum(FAILED not in files and pod not in known for (_, pod), files in attempts.items())


def tried_again(attempts: Iterable[tuple[str, str]], done: Collection[str]) -> int:
    tried = Counter(scenario for scenario, _ in attempts if scenario not in done)
    return sum(count > 1 for count in tried.values())


def summarised(
    batch: str,
    *,
    scenarios: int,
    succeeded: int,
    run: LastRun,
    evictions: int,
    retried_left: int,
    results: Sequence[Mapping[str, Any]],
    spent: Cost,
) -> Summary:
    begun = min((each["started"] for each in results), default=0)
    ended = max((each["ended"] for each in results), default=0)
    return Summary(
        batch=batch,
        state=run.state,
        scenarios=scenarios,
        succeeded=succeeded,
        failed=run.failed,
        running=min(run.active, scenarios - succeeded),  # outputs exist before Kubernetes registers the end of pods
        evicted=evictions,
        retried=sum(each["attempts"] > 1 for each in results) + retried_left,
        input_bytes=sum(each.get("inputBytes", 0) for each in results),
        output_bytes=sum(each["outputBytes"] for each in results),
        seconds=float(ended - begun),
        scenario_seconds=float(sum(each["ended"] - each["started"] for each in results)),
        node_hours=round(sum(node_hours(results).values()), 4),
        cost=spent,
        reason=run.reason,
    )


def _bytes(count: float) -> str:
    unit = 0
    while count >= 1000 and unit < len(_UNITS) - 1:
        count, unit = count / 1000, unit + 1
    return f"{count:.1f} {_UNITS[unit]}" if unit else f"{count:.0f} B"


def _money(spent: Cost) -> str:
    if spent.usd is None:
        return "unknown: the VM size of the nodes has no list price"
    return f"{'at most ' if spent.at_most else ''}${spent.usd:,.2f}, by Azure's list prices"
