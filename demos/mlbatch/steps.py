"""The steps, in their order: each does what a user would, waits for what must come of it, and tells it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from config.data.scheduling import BAD_NODE, GPU_LABEL, GPU_RESOURCE
from demos.mlbatch.cluster import JOBS, Cluster, Denied, Failed, gpus, runs
from k8s.resources import allocatable

BLUE, RED = "blue", "red"
ALICE, BOB = "alice@example.com", "bob@example.com"
"""Each of their team alone."""
_OFFERS = [8, 8, 8]
GPUS = sum(_OFFERS)
"""Of the cluster that they share."""
SOON_S = 60.0
"""For Kueue to see that something has changed, and for pods to begin."""
DRIVERS_S = 1800.0
"""On Azure drivers take a node a quarter of an hour (simulator/bench/durations.yaml), and its boot some minutes."""
LENDS_S = 400.0
"""The node-health job sets every five minutes how many GPUs the slack queue lends: fewer while a node is bad, as in the
step `recovery`.
"""
LOOKS_S = 180.0
"""AppWrapper looks at what runs once a minute, and gives its pods a minute to go."""


@dataclass
class Demonstration:
    """What has been submitted so far. `tell` is given each line as it comes."""

    cluster: Cluster
    tell: Callable[[str], None]
    jobs: dict[str, list[str]] = field(default_factory=lambda: {BLUE: [], RED: []})

    def run(self) -> None:
        """Raises Failed at the first step that comes out otherwise; what was submitted is removed then too."""
        self._check()
        try:
            for number, step in enumerate(STEPS, start=1):
                self.tell(f"\n{number}. {step.__doc__}")
                begun = time.monotonic()
                step(self)
                self.tell(f"   as it should be, after {time.monotonic() - begun:.1f} s")
        finally:
            for team in (BLUE, RED):
                self.ends(team)

    def submit(self, file: str, team: str, user: str) -> str:
        """As the user; `<kind>/<name>`."""
        name = self.cluster.create(file, team, user)
        self.jobs[team].append(name)
        self.tell(f"   $ kubectl create --as={user} -n {team} -f jobs/{file}    # {name}")
        return name

    def begins(self, name: str, team: str, pods: int = 1) -> float:
        """Waits until all of its pods run; how long that took, in seconds."""
        begun = time.monotonic()
        self.cluster.waits(lambda: self.running(name, team) == pods, f"{name} of {team} runs", SOON_S)
        return time.monotonic() - begun

    def running(self, name: str, team: str) -> int:
        """How many of its pods do."""
        return sum(runs(pod) for pod in self.cluster.pods(team, name))

    def holds(self, name: str, team: str) -> None:
        """Raises Failed where a job that has to wait has a pod, within the time that others take to begin."""
        for _ in range(5):
            if found := self.cluster.pods(team, name):
                raise Failed(f"{name} of {team} must wait, but has {len(found)} pods")
            time.sleep(1)

    def used(self, team: str) -> int:
        """GPUs of the team's pods that run."""
        return sum(gpus(pod) for pod in self.cluster.pods(team) if runs(pod))

    def ends(self, team: str) -> None:
        """Removes all of the team's jobs, as its member, and waits until their pods are gone."""
        user = {BLUE: ALICE, RED: BOB}[team]
        for name in self.jobs[team]:
            self.cluster.kubectl("delete", name, f"--namespace={team}", "--ignore-not-found", user=user)
        self.jobs[team].clear()
        self.cluster.waits(lambda: not self.cluster.pods(team), f"pods of {team} are gone", SOON_S)

    def _check(self) -> None:
        """The demonstration counts on three nodes of eight GPUs that nobody uses."""
        nodes = [node for node in self.cluster.nodes() if node["metadata"]["labels"].get(GPU_LABEL) == "true"]
        if len(nodes) == len(_OFFERS) and self._offered() != _OFFERS:
            self.tell("the nodes' drivers are being installed")
            self.cluster.waits(lambda: self._offered() == _OFFERS, "24 GPUs are offered", DRIVERS_S)
        if (offered := self._offered()) != _OFFERS:
            seen = ", ".join(map(str, offered)) or "none"
            fix = "make up STACK=mlbatch, then make demo-mlbatch STACK=mlbatch"
            raise Failed(f"the nodes offer {seen} GPUs, not 8 on each of three\n  fix: {fix}")
        for team in (BLUE, RED):
            if self.cluster.pods(team):
                raise Failed(f"team {team} has pods already\n  fix: kubectl delete jobs,appwrappers --all -n {team}")
        if not self._lends_all():
            self.tell("a node was bad: the slack queue lends all its GPUs again after the next round of node-health")
            self.cluster.waits(self._lends_all, "the slack queue lends its 8 GPUs", LENDS_S)

    def _lends_all(self) -> bool:
        queue = ("clusterqueue", "slack-cluster-queue", "--ignore-not-found")
        return self.cluster.kubectl("get", *queue, "--output=jsonpath={..lendingLimit}") in ("", "8")

    def _offered(self) -> list[int]:
        """GPUs of each node that has some."""
        found = (allocatable(node, GPU_RESOURCE) for node in self.cluster.nodes())
        return sorted(count for count in found if count)


def queueing(demo: Demonstration) -> None:
    """Alice's team has 8 GPUs, 8 are nobody's, and 8 are red's, which rests: three jobs begin, the fourth waits."""
    first = [demo.submit("train.yaml", BLUE, ALICE) for _ in range(3)]
    for name in first:
        demo.begins(name, BLUE)
    demo.holds(demo.submit("train.yaml", BLUE, ALICE), BLUE)
    demo.tell(f"   blue has {demo.used(BLUE)} GPUs, of which it borrows 16; one job waits, without a pod")


def reclaim(demo: Demonstration) -> None:
    """Bob wants the 8 GPUs that are his team's: Kueue ends the newest job of blue, and his begins."""
    seconds = demo.begins(demo.submit("train.yaml", RED, BOB), RED)
    demo.cluster.waits(lambda: demo.used(BLUE) == 16, "blue has given 8 GPUs back", SOON_S)
    demo.tell(f"   his job ran {seconds:.1f} s after he had submitted it; blue has {demo.used(BLUE)} GPUs")


def slack(demo: Demonstration) -> None:
    """What is nobody's stays with whom it was lent to: blue came first, and red's second job waits."""
    demo.holds(demo.submit("train.yaml", RED, BOB), RED)
    demo.tell(f"   blue keeps {demo.used(BLUE)} GPUs, red has {demo.used(RED)}")


def gang(demo: Demonstration) -> None:
    """A job of three pods on three nodes waits as a whole while red has one of them, and begins as a whole."""
    demo.ends(BLUE)
    name = demo.submit("gang.yaml", BLUE, ALICE)
    demo.holds(name, BLUE)
    demo.tell("   two nodes are free, and none of its pods is there")
    demo.ends(RED)
    demo.begins(name, BLUE, pods=3)
    demo.ends(BLUE)


def recovery(demo: Demonstration) -> None:
    """A GPU fails under a job: its node gets our label, and AppWrapper starts the job on another."""
    demo.submit("wrapped.yaml", BLUE, ALICE)
    begun = demo.cluster.waits(lambda: _node(demo), "the wrapped job runs", LOOKS_S)
    (label, _, _) = BAD_NODE.partition("=")
    demo.cluster.kubectl("label", "node", begun, BAD_NODE)
    demo.tell(f"   $ kubectl label node {begun} {BAD_NODE}")
    try:
        other = demo.cluster.waits(lambda: _node(demo, but=begun), "it runs on another node", LOOKS_S)
    finally:
        demo.cluster.kubectl("label", "node", begun, f"{label}-")
    demo.tell(f"   it runs on {other} now")


def _node(demo: Demonstration, but: str = "") -> str:
    """Where the wrapped job runs; empty where it does not, or on that node."""
    found = [pod["spec"]["nodeName"] for pod in demo.cluster.pods(BLUE, "job/wrapped") if runs(pod)]
    return next((str(node) for node in found if node != but), "")


def denied(demo: Demonstration) -> None:
    """Nobody touches what is another team's, or goes past the queue."""
    job, pod = (f"--filename={JOBS / file}" for file in ("train.yaml", "past-the-queue.yaml"))
    asked = (
        ("reads red's secrets", ["get", "secrets", f"--namespace={RED}"]),
        ("ends red's jobs", ["delete", "jobs", "--all", f"--namespace={RED}"]),
        ("runs a job of red's", ["create", f"--namespace={RED}", job]),
        ("takes GPUs past the queue", ["create", f"--namespace={BLUE}", pod]),
        ("gives herself more", ["patch", "clusterqueue", "blue-cluster-queue", "--type=merge", "--patch={}"]),
    )
    for what, arguments in asked:
        try:
            demo.cluster.kubectl(*arguments, user=ALICE)
        except Denied as refusal:
            demo.tell(f"   alice {what}: {str(refusal).splitlines()[-1][:160]}")
            if "orbidden" not in str(refusal):
                raise Failed(f"alice {what}: refused, but not as forbidden: {refusal}") from None
        else:
            raise Failed(f"alice {what}: nothing kept her from it")


STEPS: tuple[Callable[[Demonstration], None], ...] = (queueing, reclaim, slack, gang, recovery, denied)
