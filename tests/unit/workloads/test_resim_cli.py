"""`python -m workloads.resim`, on a cluster and a container that are kept in memory."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.case_files import case_table
from tests.unit.workloads.resim_cli import URL, Cli, error_of, outputs, refused
from workloads.resim.batch import Refused
from workloads.resim.cli import processes
from workloads.resim.cli.platform import platform
from workloads.resim.cli.store import refusal


def test_the_seeds_habit(cli: Cli) -> None:
    code, said = cli("submit", "--njobs", "20")
    (job,) = cli.cluster.jobs
    assert (code, job["spec"]["completions"]) == (0, 20)
    name = job["metadata"]["name"].removesuffix("-1")
    assert said.splitlines() == [
        f"job.batch/{name}-1 created",
        f"batch {name}: 20 of 20 scenarios to do; status: python -m workloads.resim status {name}",
    ]
    listed = cli.blobs.blobs[f"ai/{name}/runs/1.txt"].decode().splitlines()
    assert (listed[0], listed[-1], len(listed)) == ("scenario-000000", "scenario-000019", 20)
    assert json.loads(cli.blobs.blobs[f"ai/{name}/batch.json"])["scenarios"] == 20


def test_submitted_again_only_what_is_left_is_done(cli: Cli) -> None:
    cli("submit", "--njobs", "4", "--name", "night")
    cli.cluster.end("Failed")
    cli.blobs.finish("night", "scenario-000000", "scenario-000002")
    assert cli.document("submit", "--njobs", "4", "--name", "night") == {
        "batch": "night",
        "run": 2,
        "job": "night-2",
        "scenarios": 4,
        "left": 2,
    }
    assert cli.blobs.blobs["ai/night/runs/2.txt"] == b"scenario-000001\nscenario-000003\n"
    cli.cluster.end()
    cli.blobs.finish("night", "scenario-000001", "scenario-000003")
    assert "all 4 scenarios are done; nothing was created" in cli("submit", "--njobs", "4", "--name", "night")[1]


def test_what_the_stack_says_can_be_said_otherwise_for_one_batch(cli: Cli) -> None:
    cli("submit", "--njobs", "9", "--parallelism", "3", "--hours", "2")
    (job,) = cli.cluster.jobs
    assert (job["spec"]["parallelism"], job["spec"]["activeDeadlineSeconds"]) == (3, 7200)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"../../etc/passwd\n", "has names that are no file names: line 1 is '../../etc/passwd'"),
        (b"x" * 60_000_000, "is larger than 10,200,102 bytes"),
    ],
)
def test_a_file_that_is_no_batch_is_refused_before_the_stack_is_asked(
    cli: Cli, tmp_path: Path, content: bytes | None, says: str
) -> None:
    cli.outputs = {}
    file = tmp_path / "list.txt"
    if content is not None:
        file.write_bytes(content)
    assert says in refused(cli, "submit", "--scenarios", str(file))


@pytest.mark.parametrize(
    ("option", "value", "most"),
    [("--hours", "0", "8760"), ("--hours", "9" * 12, "8760"), ("--parallelism", "-1", "100000")],
)
def test_numbers_that_no_job_takes(
    cli: Cli, capsys: pytest.CaptureFixture[str], option: str, value: str, most: str
) -> None:
    with pytest.raises(SystemExit):
        cli("submit", "--njobs", "4", f"{option}={value}")
    assert f"{value!r} is no whole number from 1 to {most}" in capsys.readouterr().err
    assert cli.cluster.jobs == []


def test_the_same_name_for_other_scenarios(cli: Cli) -> None:
    cli("submit", "--njobs", "4", "--name", "night")
    cli.cluster.end()
    said = refused(cli, "submit", "--njobs", "5", "--name", "night")
    assert "batch night has other scenarios: 4, of 20" in said
    assert "--name batch-" in said


def test_a_batch_that_still_runs(cli: Cli) -> None:
    cli("submit", "--njobs", "4", "--name", "night")
    said = refused(cli, "submit", "--njobs", "4", "--name", "night")
    assert "batch night is still running (night-1)" in said
    assert "cancel night" in said


@case_table(__file__, "refused")
def test_what_is_refused(cli: Cli, words: str, says: list[str]) -> None:
    said = refused(cli, "submit", *words.split())
    assert [text for text in says if text not in said] == []


def test_an_identity_is_not_outlived(cli: Cli) -> None:
    for container in cli.outputs["platform"]["containers"].values():
        del container["expiry"]
    assert cli("submit", "--njobs", "4", "--hours", "4800")[0] == 0


def test_a_stack_without_the_workload(cli: Cli) -> None:
    cli.outputs = {"workloads": {"olmo": "kubectl"}, "workloadDetails": {"olmo": {}}}
    assert "the selected stack has no workload resim; it has olmo" in refused(cli, "submit", "--njobs", "4")


def test_a_cluster_without_the_workload(cli: Cli) -> None:
    del cli.cluster.config_maps["resim-templates"]
    assert "namespace ai has no ConfigMap resim-templates" in refused(cli, "submit", "--njobs", "4")


@case_table(__file__, "storage")
def test_storage_that_lets_nobody_in(cli: Cli, code: str, says: str) -> None:
    cli.blobs.error = code or " "
    assert says in refused(cli, "submit", "--njobs", "4")


def test_a_login_without_a_role() -> None:
    found = platform("dev", outputs(sas={}), outputs(sas={}))
    said = str(refusal(error_of("AuthorizationPermissionMismatch"), found.container("output")))
    assert "Storage Blob Data Contributor" in said


# --- the commands beneath ---


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Puts a program on PATH."""
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    def put(name: str, script: str) -> None:
        (tmp_path / name).write_text(f"#!/bin/bash\n{script}\n")
        (tmp_path / name).chmod(0o755)

    return put


@case_table(__file__, "kubectl")
def test_a_cluster_that_gives_no_answer(
    program: Callable[[str, str], None], said: list[str], what: str, fix: str
) -> None:
    program("kubectl", "".join(f"echo '{line}' >&2; " for line in said) + "exit 1")
    with processes.kubectl("apiVersion: v1", "ai") as cluster, pytest.raises(Refused) as refused:
        cluster.create({"kind": "Job"})
    assert (refused.value.what, fix in refused.value.fix) == (what, True)


def test_the_kubeconfig_is_the_stacks_and_only_this_user_can_read_it(program: Callable[[str, str], None]) -> None:
    program("kubectl", 'file=${1#--kubeconfig=}; echo "{\\"items\\": [\\"$(stat -c %a "$file") $(cat "$file")\\"]}"')
    with processes.kubectl("apiVersion: v1", "ai") as cluster:
        assert [*map(str, cluster.list("jobs"))] == ["600 apiVersion: v1"]


def test_outputs_that_cannot_be_read(program: Callable[[str, str], None]) -> None:
    program("pulumi", "echo \"error: no stack named 'nigth' found\" >&2; exit 255")
    with pytest.raises(Refused, match="the outputs of stack nigth cannot be read: error: no stack named 'nigth' found"):
        processes.outputs("nigth")


def test_a_stack_on_anothers_platform_has_its_containers() -> None:
    own = {"workloadDetails": {"resim": {"namespace": "team"}}, "kubeconfig": "k", "platformStack": "org/p/dev"}
    found = platform("team", own, outputs())
    assert (found.namespace, found.container("output").url) == ("team", f"{URL}/output")
    with pytest.raises(Refused, match="container outputs is not among the outputs of stack team"):
        found.container("outputs")


def test_the_same_scenarios_of_another_dataset_are_another_batch(cli: Cli) -> None:
    cli("submit", "--njobs", "4", "--name", "night")
    cli.cluster.end()
    made = json.loads(cli.cluster.config_maps["resim-templates"]["data"]["test-io.json"])
    (container,) = made["template"]["spec"]["containers"]
    next(each for each in container["env"] if each["name"] == "INPUT")["value"] = "/input/fleet"
    cli.cluster.config_maps["resim-templates"]["data"]["test-io.json"] = json.dumps(made)
    said = refused(cli, "submit", "--njobs", "4", "--name", "night")
    assert "batch night was made of another image, command or dataset than the stack has now" in said
    assert "--name night-" in said
