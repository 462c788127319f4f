from __future__ import annotations

import json

import pytest

from tests.unit.workloads.resim_cli import Cli, refused
from tests.unit.workloads.test_resim import made_of


def test_reports_the_status_of_a_batch(cli: Cli) -> None:
    cli("submit", "--njobs", "4", "--name", "night")
    cli.cluster.end()
    cli.blobs.finish("night", "scenario-000000", "scenario-000001", attempts=2)
    cli.blobs.blobs["ai/night/attempts/scenario-000002/night-1-2-x/EVICTED"] = b""
    for pod in ("night-1-3-x", "night-1-3-y"):
        cli.blobs.blobs[f"ai/night/attempts/scenario-000003/{pod}/FAILED"] = b""
    status = cli.document("status", "night")
    counts = status["succeeded"], status["left"], status["evicted"], status["retried"]
    assert counts == (2, 2, 1, 3), "failed scenarios may have retries, too"
    assert (status["inputBytes"], status["outputBytes"], status["seconds"]) == (14, 200, 61.0)
    assert status["cost"]["atMost"]
    assert "2 succeeded" in cli("status", "night")[1]


def test_ignores_an_unreadable_result(cli: Cli) -> None:
    cli("submit", "--njobs", "3", "--name", "night")
    cli.cluster.end()
    cli.blobs.finish("night", "scenario-000000", "scenario-000001")
    cli.blobs.blobs["ai/night/results/scenario-000001/result.json"] = b'{"scenario": "scenario-000001",\n ,\n \xff}'
    status = cli.document("status", "night")
    assert (status["succeeded"], status["outputBytes"]) == (2, 100)


def test_the_exit_code_shows_whether_the_batch_failed(cli: Cli) -> None:
    cli("submit", "--njobs", "4", "--name", "night")
    cli.cluster.end("Failed", failedIndexes="0-3")
    assert cli("status", "night", "--wait")[0] == 1
    cli.cluster.end()
    assert cli("status", "night", "--wait")[0] == 0


@pytest.mark.parametrize("command", [("status", "dusk"), ("retry", "dusk"), ("cancel", "dusk")])
def test_rejects_unknown_batches(cli: Cli, command: tuple[str, ...]) -> None:
    cli("submit", "--njobs", "4", "--name", "night")
    error = refused(cli, *command)
    assert "batch dusk" in error
    assert "allowed: night" in error


def test_a_retry_runs_the_remaining_scenarios(cli: Cli) -> None:
    cli("submit", "--njobs", "4", "--name", "night")
    cli.cluster.end("Failed")
    cli.blobs.finish("night", "scenario-000000")
    assert cli.document("retry", "night")["left"] == 3
    assert cli.blobs.blobs["ai/night/runs/2.txt"] == b"scenario-000001\nscenario-000002\nscenario-000003\n"


def test_a_batch_keeps_its_template(cli: Cli) -> None:
    other = made_of()
    other["template"]["spec"]["containers"][0]["image"] = "metaseq:1"
    cli.cluster.config_maps["resim-templates"]["data"]["metaseq.json"] = json.dumps(other)
    cli("submit", "--njobs", "1", "--name", "training", "--template", "metaseq")
    for again in (("retry", "training"), ("submit", "--njobs", "1", "--name", "training")):
        cli.cluster.end("Failed")
        assert cli(*again)[0] == 0
    images = [job["spec"]["template"]["spec"]["containers"][0]["image"] for job in cli.cluster.jobs]
    assert images == ["metaseq:1"] * 3


def test_a_cancelled_batch_keeps_its_results(cli: Cli) -> None:
    cli("submit", "--njobs", "4", "--name", "night")
    cli.blobs.finish("night", "scenario-000000")
    assert cli("cancel", "night")[1].splitlines()[0] == "job.batch/night-1 deleted"
    assert cli.cluster.jobs == []
    assert cli.document("status", "night")["succeeded"] == 1
    assert cli.document("submit", "--njobs", "4", "--name", "night")["left"] == 3


def test_counts_evicted_attempts(cli: Cli) -> None:
    cli("submit", "--njobs", "4", "--name", "night")
    for pod, phase, file in (
        ("night-1-0", "Failed", "EVICTED"),
        ("night-1-1", "Running", "log.txt"),
        ("night-1-2", "Failed", "FAILED"),
    ):
        cli.cluster.pod(pod, "night", phase)
        cli.blobs.blobs[f"ai/night/attempts/scenario-00000{pod[-1]}/{pod}/{file}"] = b""
    assert cli.document("status", "night")["evicted"] == 1


def test_cancels_without_access_to_the_storage(cli: Cli) -> None:
    cli("submit", "--njobs", "4", "--name", "night")
    cli.blobs.error = "AuthenticationFailed"
    code, output = cli("cancel", "night")
    assert (code, output.splitlines()[0]) == (0, "job.batch/night-1 deleted")
    assert "to continue: python -m workloads.resim retry night" in output
    assert cli.cluster.jobs == []


def test_finished_scenarios_do_not_count_as_running(cli: Cli) -> None:
    """Results exist a moment before Kubernetes sees their pods' end."""
    cli("submit", "--njobs", "2", "--name", "night")
    cli.blobs.finish("night", "scenario-000000")
    cli.blobs.blobs["ai/night/attempts/scenario-000001/night-1-1/log.txt"] = b""
    cli.cluster.pod("night-1-1", "night", "Succeeded")
    cli.cluster.jobs[0]["status"] = {"active": 2}
    status = cli.document("status", "night")
    assert (status["succeeded"], status["running"], status["evicted"]) == (1, 1, 0)


def test_jobs_are_deleted_with_the_stack(cli: Cli) -> None:
    cli("submit", "--njobs", "2", "--name", "night")
    (owner,) = cli.cluster.jobs[0]["metadata"]["ownerReferences"]
    assert owner == {"apiVersion": "v1", "kind": "ConfigMap", "name": "resim-batches", "uid": "uid-of-owner"}


def test_reports_how_to_restart_the_stacks_own_batch(cli: Cli) -> None:
    code, error = cli("status", "resim")
    assert code == 1
    assert "resim, the stack's own batch, has no Jobs" in error
    assert "pulumi up --refresh" in error
