"""The steps of the demonstration. Each acts as a user, waits for the result, and prints it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from config.data.scheduling import BAD_NODE, GPU_LABEL, GPU_RESOURCE
from demos.mlbatch.cluster import JOBS, Cluster, Denied, Failed, gpus, is_running
from k8s.resources import allocatable

BLUE, RED = "blue", "red"
ALICE, BOB = "alice@example.com", "bob@example.com"
_OFFERS = [8, 8, 8]
GPUS = sum(_OFFERS)
SOON_S = 60.0
DRIVERS_S = 1800.0
"""The time for drivers: a quarter of an hour per node on Azure, after its boot (simulator/bench/durations.yaml)."""
LENDS_S = 400.0
"""The time until the slack queue lends all GPUs. The node-health job updates the queue's limit every five minutes, and
lowers it while a node is bad, as after `recovery`.
"""
LOOKS_S = 180.0
"""The time for AppWrapper, which checks its pods once a minute and gives them a minute to terminate."""


@dataclass
class Demonstration:
    """The demonstration with its submitted jobs. It passes each line of output to `tell`."""

    cluster: Cluster
    tell: Callable[[str], None]
    jobs: dict[str, list[str]] = field(default_factory=lambda: {BLUE: [], RED: []})

    def run(self) -> None:
        """Runs all steps. Raises Failed at the first unexpected result. Always removes the submitted jobs."""
        self._check()
        try:
            for number, step in enumerate(STEPS, start=1):
                self.tell(f"\n{number}. {step.__doc__}")
                begun = time.monotonic()
                step(self)
                self.tell(f"   expected result after {time.monotonic() - begun:.1f} s")
        finally:
            for team in (BLUE, RED):
                self.remove_jobs(team)

    def submit(self, file: str, team: str, user: str) -> str:
        name = self.cluster.create(file, team, user)
        self.jobs[team].append(name)
        self.tell(f"   $ kubectl create --as={user} -n {team} -f jobs/{file}    # {name}")
        return name

    def wait_until_running(self, name: str, team: str, pods: int = 1) -> float:
        begun = time.monotonic()
        self.cluster.wait(lambda: self.running(name, team) == pods, f"{name} of {team} runs", SOON_S)
        return time.monotonic() - begun

    def running(self, name: str, team: str) -> int:
        return sum(is_running(pod) for pod in self.cluster.pods(team, name))

    def check_waits(self, name: str, team: str) -> None:
        """Raises Failed if a job that must wait gets a pod within five seconds, in which jobs usually start."""
        for _ in range(5):
            if found := self.cluster.pods(team, name):
                raise Failed(f"{name} of {team} must wait, but has {len(found)} pods")
            time.sleep(1)

    def used(self, team: str) -> int:
        return sum(gpus(pod) for pod in self.cluster.pods(team) if is_running(pod))

    def remove_jobs(self, team: str) -> None:
        """Removes all of the team's jobs, as its member, and waits until their pods are gone."""
        user = {BLUE: ALICE, RED: BOB}[team]
        for name in self.jobs[team]:
            self.cluster.kubectl("delete", name, f"--namespace={team}", "--ignore-not-found", user=user)
        self.jobs[team].clear()
        self.cluster.wait(lambda: not self.cluster.pods(team), f"pods of {team} are gone", SOON_S)

    def _check(self) -> None:
        nodes = [node for node in self.cluster.nodes() if node["metadata"]["labels"].get(GPU_LABEL) == "true"]
        if len(nodes) == len(_OFFERS) and self._offered() != _OFFERS:
            self.tell("waiting for the nodes' drivers")
            self.cluster.wait(lambda: self._offered() == _OFFERS, "24 GPUs are offered", DRIVERS_S)
        if (offered := self._offered()) != _OFFERS:
            seen = ", ".join(map(str, offered)) or "none"
            fix = "make up STACK=mlbatch, then make demo-mlbatch STACK=mlbatch"
            raise Failed(f"the nodes offer {seen} GPUs, but the demonstration needs three nodes with 8\n  fix: {fix}")
        for team in (BLUE, RED):
            if self.cluster.pods(team):
                raise Failed(f"team {team} already has pods\n  fix: kubectl delete jobs,appwrappers --all -n {team}")
        if not self._lends_all():
            self.tell("a node was bad: waiting for the next round of node-health, which resets the slack queue")
            self.cluster.wait(self._lends_all, "the slack queue lends its 8 GPUs", LENDS_S)

    def _lends_all(self) -> bool:
        queue = ("clusterqueue", "slack-cluster-queue", "--ignore-not-found")
        return self.cluster.kubectl("get", *queue, "--output=jsonpath={..lendingLimit}") in ("", "8")

    def _offered(self) -> list[int]:
        found = (allocatable(node, GPU_RESOURCE) for node in self.cluster.nodes())
        return sorted(count for count in found if count)


def queueing(demo: Demonstration) -> None:
    """Alice's team blue has 8 GPUs, 8 belong to no team, and 8 to red, which is idle: three jobs start, the fourth
    waits.
    """
    first = [demo.submit("train.yaml", BLUE, ALICE) for _ in range(3)]
    for name in first:
        demo.wait_until_running(name, BLUE)
    demo.check_waits(demo.submit("train.yaml", BLUE, ALICE), BLUE)
    demo.tell(f"   blue has {demo.used(BLUE)} GPUs and borrows 16 of them; one job waits, without a pod")


def reclaim(demo: Demonstration) -> None:
    """Bob requests the 8 GPUs of his team: Kueue preempts the newest job of blue, and his job starts."""
    seconds = demo.wait_until_running(demo.submit("train.yaml", RED, BOB), RED)
    demo.cluster.wait(lambda: demo.used(BLUE) == 16, "blue has returned 8 GPUs", SOON_S)
    demo.tell(f"   his job ran after {seconds:.1f} s; blue has {demo.used(BLUE)} GPUs")


def slack(demo: Demonstration) -> None:
    """GPUs that belong to no team stay with their borrower: blue came first, and red's second job waits."""
    demo.check_waits(demo.submit("train.yaml", RED, BOB), RED)
    demo.tell(f"   blue keeps {demo.used(BLUE)} GPUs, red has {demo.used(RED)}")


def gang(demo: Demonstration) -> None:
    """A job of three pods on three nodes waits while red uses one of them; then all of its pods start together."""
    demo.remove_jobs(BLUE)
    name = demo.submit("gang.yaml", BLUE, ALICE)
    demo.check_waits(name, BLUE)
    demo.tell("   two nodes are free, but the job has no pod")
    demo.remove_jobs(RED)
    demo.wait_until_running(name, BLUE, pods=3)
    demo.remove_jobs(BLUE)


def recovery(demo: Demonstration) -> None:
    """A GPU of a job fails: its node gets a label, and AppWrapper restarts the job on another node."""
    demo.submit("wrapped.yaml", BLUE, ALICE)
    begun = demo.cluster.wait(lambda: _node(demo), "the wrapped job runs", LOOKS_S)
    (label, _, _) = BAD_NODE.partition("=")
    demo.cluster.kubectl("label", "node", begun, BAD_NODE)
    demo.tell(f"   $ kubectl label node {begun} {BAD_NODE}")
    try:
        other = demo.cluster.wait(lambda: _node(demo, but=begun), "it runs on another node", LOOKS_S)
    finally:
        demo.cluster.kubectl("label", "node", begun, f"{label}-")
    demo.tell(f"   it runs on {other} now")


def _node(demo: Demonstration, but: str = "") -> str:
    found = [pod["spec"]["nodeName"] for pod in demo.cluster.pods(BLUE, "job/wrapped") if is_running(pod)]
    return next((str(node) for node in found if node != but), "")


def denied(demo: Demonstration) -> None:
    """Verifies that no user can change objects of another team, or bypass the queue."""
    job, pod = (f"--filename={JOBS / file}" for file in ("train.yaml", "past-the-queue.yaml"))
    asked = (
        ("reads red's secrets", ["get", "secrets", f"--namespace={RED}"]),
        ("deletes red's jobs", ["delete", "jobs", "--all", f"--namespace={RED}"]),
        ("creates a job of red", ["create", f"--namespace={RED}", job]),
        ("bypasses the queue", ["create", f"--namespace={BLUE}", pod]),
        ("raises her quota", ["patch", "clusterqueue", "blue-cluster-queue", "--type=merge", "--patch={}"]),
    )
    for what, arguments in asked:
        try:
            demo.cluster.kubectl(*arguments, user=ALICE)
        except Denied as refusal:
            demo.tell(f"   alice {what}: {str(refusal).splitlines()[-1][:160]}")
            if "orbidden" not in str(refusal):
                raise Failed(f"alice {what}: rejected, but not as forbidden: {refusal}") from None
        else:
            raise Failed(f"alice {what}: the API server allowed it")


STEPS: tuple[Callable[[Demonstration], None], ...] = (queueing, reclaim, slack, gang, recovery, denied)
