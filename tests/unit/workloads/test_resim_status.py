"""`status`, `logs`, `retry` and `cancel` of `python -m workloads.resim`."""

from __future__ import annotations

import json

import pytest

from tests.unit.workloads.resim_cli import Cli, refused
from tests.unit.workloads.test_resim import made_of


def test_a_batch_by_its_outputs(cli: Cli) -> None:
    cli("submit", "--njobs", "4", "--name", "night")
    cli.cluster.end()
    cli.blobs.finish("night", "scenario-000000", "scenario-000001", attempts=2)
    cli.blobs.blobs["ai/night/attempts/scenario-000002/night-1-2-x/EVICTED"] = b""
    for pod in ("night-1-3-x", "night-1-3-y"):
        cli.blobs.blobs[f"ai/night/attempts/scenario-000003/{pod}/FAILED"] = b""
    told = cli.document("status", "night")
    assert (told["succeeded"], told["left"], told["evicted"], told["retried"]) == (2, 2, 1, 3), "failed ones count too"
    assert (told["inputBytes"], told["outputBytes"], told["seconds"]) == (14, 200, 61.0)
    assert told["cost"]["atMost"]
    assert "2 succeeded" in cli("status", "night")[1]


def test_a_result_that_cannot_be_read_does_not_hide_the_others(cli: Cli) -> None:
    cli("submit", "--njobs", "3", "--name", "night")
    cli.cluster.end()
    cli.blobs.finish("night", "scenario-000000", "scenario-000001")
    cli.blobs.blobs["ai/night/results/scenario-000001/result.json"] = b'{"scenario": "scenario-000001",\n ,\n \xff}'
    told = cli.document("status", "night")
    assert (told["succeeded"], told["outputBytes"]) == (2, 100)


def test_waiting_for_a_batch_that_fails(cli: Cli) -> None:
    cli("submit", "--njobs", "4", "--name", "night")
    cli.cluster.end("Failed", failedIndexes="0-3")
    assert cli("status", "night", "--wait")[0] == 1
    cli.cluster.end()
    assert cli("status", "night", "--wait")[0] == 0


@pytest.mark.parametrize("command", [("status", "dusk"), ("retry", "dusk"), ("cancel", "dusk")])
def test_a_batch_that_is_not_there(cli: Cli, command: tuple[str, ...]) -> None:
    cli("submit", "--njobs", "4", "--name", "night")
    said = refused(cli, *command)
    assert "batch dusk" in said
    assert "allowed: night" in said


def test_a_retry_does_what_failed(cli: Cli) -> None:
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


def test_a_cancelled_batch_keeps_what_is_done(cli: Cli) -> None:
    cli("submit", "--njobs", "4", "--name", "night")
    cli.blobs.finish("night", "scenario-000000")
    assert cli("cancel", "night")[1].splitlines()[0] == "job.batch/night-1 deleted"
    assert cli.cluster.jobs == []
    assert cli.document("status", "night")["succeeded"] == 1
    assert cli.document("submit", "--njobs", "4", "--name", "night")["left"] == 3


def test_attempts_that_neither_failed_nor_are_at_work_were_evicted(cli: Cli) -> None:
    cli("submit", "--njobs", "4", "--name", "night")
    for pod, phase, file in (
        ("night-1-0", "Failed", "EVICTED"),
        ("night-1-1", "Running", "log.txt"),
        ("night-1-2", "Failed", "FAILED"),
    ):
        cli.cluster.pod(pod, "night", phase)
        cli.blobs.blobs[f"ai/night/attempts/scenario-00000{pod[-1]}/{pod}/{file}"] = b""
    assert cli.document("status", "night")["evicted"] == 1


def test_a_batch_is_cancelled_though_its_container_cannot_be_opened(cli: Cli) -> None:
    cli("submit", "--njobs", "4", "--name", "night")
    cli.blobs.error = "AuthenticationFailed"
    code, told = cli("cancel", "night")
    assert (code, told.splitlines()[0]) == (0, "job.batch/night-1 deleted")
    assert "to go on: python -m workloads.resim retry night" in told
    assert cli.cluster.jobs == []


def test_what_is_done_runs_no_more(cli: Cli) -> None:
    """Outputs are there a moment before Kubernetes sees the end of their pods, which has moved their attempt."""
    cli("submit", "--njobs", "2", "--name", "night")
    cli.blobs.finish("night", "scenario-000000")
    cli.blobs.blobs["ai/night/attempts/scenario-000001/night-1-1/log.txt"] = b""
    cli.cluster.pod("night-1-1", "night", "Succeeded")
    cli.cluster.jobs[0]["status"] = {"active": 2}
    told = cli.document("status", "night")
    assert (told["succeeded"], told["running"], told["evicted"]) == (1, 1, 0)


def test_jobs_go_with_the_stack(cli: Cli) -> None:
    cli("submit", "--njobs", "2", "--name", "night")
    (owner,) = cli.cluster.jobs[0]["metadata"]["ownerReferences"]
    assert owner == {"apiVersion": "v1", "kind": "ConfigMap", "name": "resim-batches", "uid": "uid-of-owner"}


def test_the_stacks_own_batch_says_how_it_comes_again(cli: Cli) -> None:
    code, told = cli("status", "resim")
    assert code == 1
    assert "resim, the stack's own batch, has no Jobs any more" in told
    assert "pulumi up --refresh" in told
