from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml

from simulator.host.paths import ROOT
from simulator.kube.client import KubeClient
from tests.support.checkout import Checkout
from tests.support.pages import code, files
from tests.support.world import eventually

pytestmark = [pytest.mark.simulator, pytest.mark.long]
PAGE = ROOT / "docs" / "adding-a-workload.md"
LOGS = {
    "hello-gpu": "kubectl logs -n hello --selector batch.kubernetes.io/job-name=hello-gpu",
    "hello-nodes": "kubectl logs -n hello hello-nodes-mpimaster-0",
}
KUBECONFIG = "clusters/ai-on-aks-dev+ai-on-aks-dev/admin.kubeconfig"
JOBS = {"hello-gpu": "batch/v1", "hello-nodes": "batch.volcano.sh/v1alpha1"}


def command(word: str) -> str:
    lines = [line.partition("  #")[0].strip() for line in code(PAGE) if line.startswith(("make ", "pulumi "))]
    (found,) = {line for line in lines if word in line}
    return found


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    made = Checkout.copy(tmp_path_factory.mktemp("adding"))
    stack = made.folder / "Pulumi.dev.yaml"
    settings = yaml.safe_load(stack.read_text())
    for key in ("workloads", "workloadOptions", "modelSize", "storage"):
        del settings["config"][f"ai-on-aks:{key}"]
    stack.write_text(yaml.safe_dump(settings))
    try:
        made.make("up")
        for name, text in files(PAGE).items():
            (made.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (made.folder / name).write_text(text)
        yield made
    finally:
        made.make("stop")


@pytest.fixture(scope="module")
def kube(checkout: Checkout) -> Iterator[KubeClient]:
    with KubeClient.from_kubeconfig((checkout.home / KUBECONFIG).read_text()) as client:
        yield client


def uids(kube: KubeClient) -> dict[str, str]:
    return {name: kube.get(api, "Job", name, "hello")["metadata"]["uid"] for name, api in JOBS.items()}


def change(checkout: Checkout, name: str, old: str, new: str) -> None:
    file = checkout.folder / name
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))


def log(checkout: Checkout, workload: str) -> list[str]:
    assert LOGS[workload] in checkout.inside("pulumi stack output workloads --stack hello").stdout
    return checkout.inside(LOGS[workload]).stdout.splitlines()


def has_passed(kube: KubeClient, workload: str) -> bool:
    status = kube.get(JOBS[workload], "Job", workload, "hello").get("status", {})
    return "completionTime" in status or status.get("state", {}).get("phase") == "Completed"


def test_both_workloads_run_on_a_simulator_that_was_started_before(checkout: Checkout) -> None:
    checkout.run(*command("up STACK=hello").split())
    assert log(checkout, "hello-gpu")[-1] == "VERDICT: PASS gpus=2"
    ranks = log(checkout, "hello-nodes")
    assert [line.split()[1] for line in ranks if line.startswith("rank ")] == [str(rank) for rank in range(16)]
    assert ranks[-1] == "VERDICT: PASS gpus=16 nodes=2"


def test_a_change_of_a_job_replaces_only_this_job(checkout: Checkout, kube: KubeClient) -> None:
    before = uids(kube)
    change(checkout, "Pulumi.hello.yaml", "gpus: 2", "gpus: 3")
    change(checkout, "docker/hello/count-gpus.sh", "VERDICT: PASS", "VERDICT: PASS again")
    checkout.run(*command("up STACK=hello").split())
    assert "VERDICT: PASS again gpus=3" in log(checkout, "hello-gpu")
    assert {name for name, uid in uids(kube).items() if uid != before[name]} == {"hello-gpu"}


def test_replace_runs_jobs_again_without_a_change(checkout: Checkout, kube: KubeClient) -> None:
    before = uids(kube)
    again = command("--replace").replace("hello-gpu", "hello-*")
    checkout.inside(f"{again} --yes --skip-preview")
    assert {name for name, uid in uids(kube).items() if uid != before[name]} == set(JOBS)
    eventually(lambda: all(has_passed(kube, name) for name in JOBS), "both have passed again")


def test_rejects_more_gpus_than_a_node_has(checkout: Checkout, kube: KubeClient) -> None:
    before = uids(kube)
    change(checkout, "Pulumi.hello.yaml", "gpus: 3", "gpus: 9")
    refused = checkout.run(*command("up STACK=hello").split(), check=False)
    output = " ".join((refused.stdout + refused.stderr).split())
    assert 'workloadOptions["hello-gpu"].gpus is 9, more than a Standard_ND96isr_H100_v5 has' in output
    assert uids(kube) == before
