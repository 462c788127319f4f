"""Finds the slow nodes, links and rails of a fabric by bisection. The caller passes the function that measures.

A rail is the GPU and the HCA with the same index on every node. All rails can be measured in parallel. The halves of
all bad groups are measured in the same round, until single nodes are left. Each single node is measured with a good
node, and again with another good node, before it is reported. For whole nodes, Azure describes this by hand
(Azure/ai-infrastructure-on-azure 6ac01e7, skills/ai-infra/references/nccl_diagnosis.md).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

GOOD, BAD, UNKNOWN = "good", "bad", "unknown"
"""States of a measurement: at least the floor; below the floor, or wrong values; no result."""
LINK, NODE, RAIL, POOL = "link", "node", "rail", "pool"
SAMPLE = 16
"""Number of nodes in pairs. If less than half of them are bad, a pair is good, so the rail itself is not bad."""
PAIRINGS = 3
"""Number of different pairings. With three, each good node of three is once in a pair without the bad node."""

Nodes = tuple[str, ...]
Rails = tuple[int, ...]


@dataclass(frozen=True)
class Group:
    """Nodes measured together, with the GPUs and HCAs of some rails."""

    nodes: Nodes
    rails: Rails


@dataclass(frozen=True)
class Outcome:
    """The result of one group: bus bandwidth and floor in GB/s, and `why` if it is not good for another reason."""

    state: str
    busbw: float = 0.0
    floor: float = 0.0
    why: str = ""


@dataclass(frozen=True)
class Finding:
    """A bad or unknown link (of a node, on a rail), node, rail, or pool."""

    kind: str
    outcome: Outcome
    node: str = ""
    rail: int | None = None


@dataclass
class Report:
    """The result of a search."""

    rounds: int = 0
    measurements: int = 0
    findings: list[Finding] = field(default_factory=list)
    chance: list[Finding] = field(default_factory=list)
    """Parts that were bad once, and then good."""
    rest: Outcome | None = None
    """Outcome of all parts without findings, measured together; None if too few parts are left."""


Measure = Callable[[Sequence[Group]], Sequence[Outcome]]
"""Measures one round. The groups of a round have no HCA in common."""


@dataclass
class _Found:
    """The result of a search for bad nodes on some rails."""

    all_nodes: Outcome
    nodes: dict[str, Outcome] = field(default_factory=dict)
    chance: dict[str, Outcome] = field(default_factory=dict)
    everywhere: Outcome | None = None
    """Outcome of the pairs if no pair is good; otherwise None."""

    @property
    def is_empty(self) -> bool:
        """Whether no part is bad, although all nodes measured together may be bad."""
        return not (self.nodes or self.chance or self.everywhere)


_Search = Generator[list[Nodes], list[Outcome], _Found]
"""Yields the groups of a round, and receives their outcomes."""


def bisect(
    nodes: Sequence[str], rails: int, measure: Measure, down: Mapping[tuple[str, int], str] | None = None
) -> Report:
    """Searches nodes on this number of rails. `down` has the reasons for links that do not work, by node and rail."""
    report, known, every = Report(), down or {}, tuple(range(rails))

    def counted(groups: Sequence[Group]) -> Sequence[Outcome]:
        report.rounds += 1
        report.measurements += len(groups)
        return measure(groups)

    first = None
    if not known:
        [first] = counted([Group(tuple(nodes), every)])
        if first.state == GOOD:
            report.rest = first
            return report
    working = {(rail,): tuple(node for node in nodes if (node, rail) not in known) for rail in every}
    found = _side_by_side(counted, {rail: _search(own) for rail, own in working.items() if len(own) > 1})
    by_rail = {rail: each for (rail,), each in found.items()}
    report.findings = list(_findings(nodes, by_rail, known))
    report.chance = list(_chance(by_rail))
    _search_rest(report, nodes, every, counted)
    if first and not report.findings:
        report.chance.append(Finding(POOL, first))
    return report


def _side_by_side(measure: Measure, searches: Mapping[Rails, _Search]) -> dict[Rails, _Found]:
    """Runs all searches in the same rounds. Returns their results by rails."""
    found: dict[Rails, _Found] = {}
    asked = {rails: next(search) for rails, search in searches.items()}
    while asked:
        outcomes = iter(measure([Group(nodes, rails) for rails, groups in asked.items() for nodes in groups]))
        answers = {rails: [next(outcomes) for _ in groups] for rails, groups in asked.items()}
        asked = {}
        for rails, answer in answers.items():
            try:
                asked[rails] = searches[rails].send(answer)
            except StopIteration as ended:
                found[rails] = ended.value
    return found


def _search(nodes: Nodes) -> _Search:
    """Measures all nodes, then pairs to find good nodes as partners, and then halves of the other nodes."""
    [all_nodes] = yield [nodes]
    found = _Found(all_nodes)
    if all_nodes.state == GOOD:
        return found
    good: list[str] = []
    tried: list[Outcome] = []
    for pairs in _pairings(_sample(nodes)):
        outcomes = yield pairs
        tried += outcomes
        good = [node for pair, outcome in zip(pairs, outcomes, strict=True) if outcome.state == GOOD for node in pair]
        if good:
            break
    else:
        found.everywhere = _mostly(tried)
        return found
    suspects, partners = yield from _halve(nodes, good)
    again = yield from _measure_parts([(node,) for node in suspects], good, partners)
    for node, before in suspects.items():
        outcome = again[(node,)]
        if outcome.state == GOOD:
            found.chance[node] = before
        else:
            found.nodes[node] = outcome if outcome.state == before.state else replace(outcome, state=UNKNOWN)
    return found


def _halve(
    nodes: Nodes, good: list[str]
) -> Generator[list[Nodes], list[Outcome], tuple[dict[str, Outcome], dict[str, str]]]:
    """Returns the single nodes that were not good, and the partner of each. Adds nodes of good parts to `good`."""
    suspects: dict[str, Outcome] = {}
    partners: dict[str, str] = {}
    groups = [tuple(node for node in nodes if node not in set(good))]
    while parts := [half for group in groups for half in _halves(group)]:
        measured = yield from _measure_parts(parts, good, partners)
        not_good = {part: outcome for part, outcome in measured.items() if outcome.state != GOOD}
        good += [node for part in measured if part not in not_good for node in part]
        groups = [part for part in not_good if len(part) > 1]
        suspects |= {part[0]: outcome for part, outcome in not_good.items() if len(part) == 1}
    return suspects, partners


def _measure_parts(
    parts: Iterable[Nodes], good: Sequence[str], partners: dict[str, str]
) -> Generator[list[Nodes], list[Outcome], dict[Nodes, Outcome]]:
    """Returns the outcome of each part. A single node is measured with another good node than before.

    Each good node has one partner in a round, so more rounds are needed if few nodes are good.
    """
    measured: dict[Nodes, Outcome] = {}
    waiting = list(parts)
    while waiting:
        free, asked = list(good), {part: part for part in waiting if len(part) > 1}
        for (node,) in (part for part in waiting if len(part) == 1):
            if partner := next((other for other in free if other != partners.get(node)), None):
                free.remove(partner)
                partners[node] = partner
                asked[(node,)] = (node, partner)
        outcomes = yield list(asked.values())
        measured |= dict(zip(asked, outcomes, strict=True))
        waiting = [part for part in waiting if part not in measured]
    return measured


def _halves(group: Nodes) -> list[Nodes]:
    middle = len(group) // 2
    return [half for half in (group[:middle], group[middle:]) if half]


def _sample(nodes: Nodes) -> Nodes:
    count = min(len(nodes), SAMPLE)
    return tuple(nodes[number * len(nodes) // count] for number in range(count))


def _pairings(nodes: Nodes) -> Iterator[list[Nodes]]:
    """Yields lists of pairs by the circle method of tournaments. Pairs only repeat after all possible pairs."""
    first, *others = [*nodes, *([""] if len(nodes) % 2 else [])]
    for number in range(PAIRINGS):
        turn = number % len(others)
        circle = [first, *others[turn:], *others[:turn]]
        pairs = [(circle[index], circle[-1 - index]) for index in range(len(circle) // 2)]
        yield [pair for pair in pairs if "" not in pair]


def _mostly(outcomes: Sequence[Outcome]) -> Outcome:
    """Returns the best bad outcome if more than half are bad, otherwise an unknown one."""
    bad = [outcome for outcome in outcomes if outcome.state == BAD]
    if 2 * len(bad) > len(outcomes):
        return max(bad, key=lambda outcome: outcome.busbw)
    return next(outcome for outcome in outcomes if outcome.state == UNKNOWN)


def _findings(
    nodes: Sequence[str], by_rail: Mapping[int, _Found], down: Mapping[tuple[str, int], str]
) -> Iterator[Finding]:
    """Yields the bad rails and the other bad links.

    If all links of a node have the same state, yields one finding for the node instead of its links. If all rails are
    bad with the same state, yields only one finding for the pool.
    """
    rails = {rail: each.everywhere for rail, each in by_rail.items() if each.everywhere}
    if len(rails) == len(by_rail) > 1 and len({outcome.state for outcome in rails.values()}) == 1:
        yield Finding(POOL, max(rails.values(), key=lambda outcome: outcome.busbw))
        return
    yield from (Finding(RAIL, outcome, rail=rail) for rail, outcome in rails.items())
    links = {(node, rail): outcome for rail, each in by_rail.items() for node, outcome in each.nodes.items()}
    links |= {link: Outcome(BAD, why=why) for link, why in down.items()}
    for node in nodes:
        own = {rail: outcome for (other, rail), outcome in links.items() if other == node}
        alike = len({outcome.state for outcome in own.values()}) == 1
        if alike and len(own) > 1 and set(own) >= set(by_rail) - set(rails):
            yield Finding(NODE, max(own.values(), key=lambda outcome: outcome.busbw), node)
        else:
            yield from (Finding(LINK, outcome, node, rail) for rail, outcome in sorted(own.items()))


def _chance(by_rail: Mapping[int, _Found]) -> Iterator[Finding]:
    for rail, found in by_rail.items():
        yield from (Finding(LINK, outcome, node, rail) for node, outcome in found.chance.items())
        if found.all_nodes.state != GOOD and found.is_empty:
            yield Finding(RAIL, found.all_nodes, rail=rail)


def _search_rest(report: Report, nodes: Sequence[str], every: Rails, measure: Measure) -> None:
    """Searches nodes and rails without findings, with all devices, for slow nodes with good links and a slow pool."""
    findings = report.findings
    left = tuple(node for node in nodes if node not in {finding.node for finding in findings})
    rails = tuple(rail for rail in every if rail not in {each.rail for each in findings if each.kind == RAIL})
    if len(left) < 2 or not rails or any(finding.kind == POOL for finding in findings):
        return
    found = _side_by_side(measure, {rails: _search(left)})[rails]
    report.rest = found.all_nodes
    report.chance += [Finding(NODE, outcome, node) for node, outcome in found.chance.items()]
    if found.everywhere:
        findings.append(Finding(POOL, found.everywhere))
    elif found.nodes:
        others = tuple(node for node in left if node not in found.nodes)
        report.rest, *alone = measure([Group(others, rails), *(Group((node,), rails) for node in found.nodes)])
        for (node, outcome), inside in zip(found.nodes.items(), alone, strict=True):
            findings.append(Finding(NODE, replace(outcome, why=_without_network(inside)), node))
    elif found.all_nodes.state != GOOD:
        [report.rest] = measure([Group(left, rails)])
        if report.rest.state != GOOD:
            findings.append(Finding(POOL, replace(report.rest, why="no single node, link or rail is bad")))


def _without_network(alone: Outcome) -> str:
    return f"each of its links is good; NVLink alone reaches {alone.busbw:g} GB/s of {alone.floor:g}: {alone.state}"
