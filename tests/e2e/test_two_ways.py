"""Several ways to the same settings end with the same state of Azure, the cluster and Pulumi.

All stacks have one name, so resources' names are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.e2e.left_state import State, differing, unexplained, used, wait_until_settled
from tests.e2e.policies import offers_gpus
from tests.support.sizes import H100, H200
from tests.support.world import Stack, World, eventually, wait_for_end

pytestmark = [pytest.mark.simulator, pytest.mark.charts, pytest.mark.long, pytest.mark.timeout(1800)]
NAME = "ways"
A100 = "Standard_ND96amsr_A100_v4"
FIRST = {"vmSku": H100, "count": 2, "labels": {"team": "a"}}
SECOND = {"vmSku": H200, "count": 1, "taints": ["team=b:NoSchedule"]}
CLUSTER = {"localAccounts": True, "systemPool": {"vmSku": "Standard_D4ads_v5", "count": 2}}
TARGET: dict[str, Any] = {
    **{"vmSku": None, "nodeCount": None, "modelSize": None, "workloadOptions": {"nccl-allreduce": {"pool": "first"}}},
    "pools": {"first": FIRST, "second": SECOND},
    "workloads": "nccl-allreduce",
    "storage": {"protect": False, "containers": {"data": {"permissions": "rl"}}},
    "tags": {"CostCenter": "4711"},
    "operators": {"nodeHealth": {"graceMinutes": 30}},
    "cluster": CLUSTER,
}
OTHERWISE: dict[str, Any] = TARGET | {
    "pools": {"first": {"vmSku": H100, "count": 1, "labels": {"team": "c"}}, "old": {"vmSku": A100, "count": 1}},
    "workloads": "",
    "workloadOptions": None,
    "storage": {
        "protect": False,
        "containers": {"old": {}, "data": {"permissions": "racwdlmp"}},
        "accounts": {"more": {"protect": False, "containers": {"extra": {}}}},
    },
    "tags": {"Owner": "alice"},
    "operators": {"volcano": {"preemption": True}, "nodeProblemDetector": {"enabled": True}},
    "cluster": CLUSTER | {"authorizedIpRanges": ["203.0.113.0/24"], "nodeOsChannel": "None"},
}
WAYS = {
    "one pool after the other": TARGET | {"pools": {"first": FIRST}},
    "created with other settings, and changed": OTHERWISE,
}
"""Settings before the stack gets those of TARGET."""
PORT = r"^core/Service default/kubernetes\.spec\.ports\.https\.targetPort$"
REASONS = {
    r"^[\w.]+/(Event|Lease|ComponentStatus) |^(?!azure ).*\.status(\.|$)": "reports what happens",
    r"^core/Pod |^apps/(ReplicaSet|ControllerRevision) |^batch/Job node-tools/node-health-\d": "follow from owners",
    r"^core/Endpoints |/EndpointSlice |/IPAddress |\.spec\.clusterIPs?(\.|$)": "addresses are chosen at random",
    PORT: "a free port of the simulator's machine",
    r"\.metadata\.(uid|resourceVersion|generation|creationTimestamp|managedFields)(\.|$)": "bookkeeping of the server",
    r"\.ownerReferences\.[^ ]+\.uid$|\.claimRef\.(uid|resourceVersion)$|pod\.uid$": "uids are random",
    r"/NodeFeature [^ ]*\.ownerReferences\.": "owners are pods, with generated names",
    r"/kube-root-ca\.crt\.|/extension-apiserver-auth|/volcano-admission-secret\.|\.caBundle$": "certificates",
    r"^core/Secret [^ ]*/sh\.helm\.release\.": "times and earlier revisions of releases, whose objects are compared",
    r"\.azurestorageaccountsastoken$": "signed for the time at which it was issued",
    r"\.deployment\.kubernetes\.io/revision$|\.rollme/helm-revision$": "count changes of a Deployment and of a release",
    r"^azure .*\.(authorizedIPRanges(\.0)?|nodeOSUpgradeChannel)$": "a cluster that is up keeps its own, unless set",
}


def deploy(stack: Stack) -> State:
    stack.up()
    eventually(lambda: offers_gpus(stack), "all nodes offer their GPUs", 600, every=1)
    eventually(lambda: wait_for_end(stack.kube) == "Completed", "the job is completed", 600)
    return wait_until_settled(stack, REASONS)


@pytest.fixture(scope="module")
def create(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[dict[str, Any]], Stack]]:
    made: list[Stack] = []

    def discard() -> None:
        while made:
            made.pop().discard()

    def again(config: dict[str, Any]) -> Stack:
        discard()
        made.append(Stack.create(world, NAME, tmp_path_factory.mktemp(NAME) / "project", config))
        return made[-1]

    yield again
    discard()


@pytest.fixture(scope="module")
def stack(create: Callable[[dict[str, Any]], Stack]) -> Stack:
    return create(TARGET)


@pytest.fixture(scope="module")
def direct(stack: Stack) -> State:
    return deploy(stack)


@pytest.fixture(scope="module")
def paths() -> Iterator[set[str]]:
    """At the end, each reason must have been used, except a port's."""
    found: set[str] = set()
    yield found
    assert used(REASONS, [*found]) | {PORT} == {*REASONS}


def check_same(direct: State, other: State, paths: set[str]) -> None:
    paths.update(differing(direct, other))
    assert unexplained(direct, other, REASONS) == {}


def test_a_refresh_changes_nothing(stack: Stack, direct: State, paths: set[str]) -> None:
    stack.pulumi("refresh", "--yes", "--skip-preview")
    check_same(direct, deploy(stack), paths)


def test_an_import_into_another_backend_changes_nothing(
    stack: Stack, direct: State, paths: set[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("imported")
    (folder / "backend").mkdir()
    stack.pulumi("stack", "export", "--stack", NAME, "--file", str(folder / "state.json"))
    elsewhere = World(stack.world.home)
    elsewhere.environment = stack.world.environment | {"PULUMI_BACKEND_URL": f"file://{folder}/backend"}
    imported = Stack.create(elsewhere, NAME, folder / "project", TARGET)
    imported.pulumi("stack", "import", "--stack", NAME, "--file", str(folder / "state.json"))
    imported.up("--expect-no-changes")
    check_same(direct, deploy(imported), paths)
    elsewhere.close()


@pytest.mark.parametrize("way", WAYS)
def test_other_initial_settings_end_with_the_same_state(
    way: str, create: Callable[[dict[str, Any]], Stack], direct: State, paths: set[str]
) -> None:
    other = create(WAYS[way])
    other.up()
    other.set(**TARGET)
    check_same(direct, deploy(other), paths)
