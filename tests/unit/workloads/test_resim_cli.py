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


def test_submits_a_number_of_scenarios(cli: Cli) -> None:
    code, output = cli("submit", "--njobs", "20")
    (job,) = cli.cluster.jobs
    assert (code, job["spec"]["completions"]) == (0, 20)
    name = job["metadata"]["name"].removesuffix("-1")
    assert output.splitlines() == [
        f"job.batch/{name}-1 created",
        f"batch {name}: 20 of 20 scenarios to run; status: python -m workloads.resim status {name}",
    ]
    listed = cli.blobs.blobs[f"ai/{name}/runs/1.txt"].decode().splitlines()
    assert (listed[0], listed[-1], len(listed)) == ("scenario-000000", "scenario-000019", 20)
    assert json.loads(cli.blobs.blobs[f"ai/{name}/batch.json"])["scenarios"] == 20


def test_a_second_submit_runs_only_the_remaining_scenarios(cli: Cli) -> None:
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


def test_options_replace_the_stacks_settings(cli: Cli) -> None:
    cli("submit", "--njobs", "9", "--parallelism", "3", "--hours", "2")
    (job,) = cli.cluster.jobs
    assert (job["spec"]["parallelism"], job["spec"]["activeDeadlineSeconds"]) == (3, 7200)


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"../../etc/passwd\n", "has invalid names: line 1 is '../../etc/passwd'"),
        (b"x" * 60_000_000, "is larger than 10,200,102 bytes"),
    ],
)
def test_rejects_an_invalid_file_before_reading_the_stack(
    cli: Cli, tmp_path: Path, content: bytes | None, error: str
) -> None:
    cli.outputs = {}
    file = tmp_path / "list.txt"
    if content is not None:
        file.write_bytes(content)
    assert error in refused(cli, "submit", "--scenarios", str(file))


@pytest.mark.parametrize(
    ("option", "value", "most"),
    [("--hours", "0", "8760"), ("--hours", "9" * 12, "8760"), ("--parallelism", "-1", "100000")],
)
def test_rejects_numbers_that_are_out_of_range(
    cli: Cli, capsys: pytest.CaptureFixture[str], option: str, value: str, most: str
) -> None:
    with pytest.raises(SystemExit):
        cli("submit", "--njobs", "4", f"{option}={value}")
    assert f"{value!r} is not a whole number from 1 to {most}" in capsys.readouterr().err
    assert cli.cluster.jobs == []


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("upload", ""), "invalid choice: 'upload' (choose from"),
        (("status", ""), "'' is not a valid name of a batch"),
        (("cancel", "a/b"), "'a/b' is not a valid name of a batch"),
    ],
)
def test_rejects_unknown_commands_and_invalid_names(
    cli: Cli, capsys: pytest.CaptureFixture[str], words: tuple[str, str], error: str
) -> None:
    with pytest.raises(SystemExit):
        cli(*words)
    assert error in capsys.readouterr().err


def test_rejects_the_name_of_a_batch_with_other_scenarios(cli: Cli) -> None:
    cli("submit", "--njobs", "4", "--name", "night")
    cli.cluster.end()
    error = refused(cli, "submit", "--njobs", "5", "--name", "night")
    assert "batch night was submitted at 20" in error
    assert "--name batch-" in error


def test_rejects_a_batch_that_is_still_running(cli: Cli) -> None:
    cli("submit", "--njobs", "4", "--name", "night")
    error = refused(cli, "submit", "--njobs", "4", "--name", "night")
    assert "batch night is still running (night-1)" in error
    assert "cancel night" in error


@case_table(__file__, "refused")
def test_rejects_invalid_options(cli: Cli, words: str, errors: list[str]) -> None:
    error = refused(cli, "submit", *words.split())
    assert [text for text in errors if text not in error] == []


def test_accepts_long_batches_with_an_identity(cli: Cli) -> None:
    for container in cli.outputs["platform"]["containers"].values():
        del container["expiry"]
    assert cli("submit", "--njobs", "4", "--hours", "4800")[0] == 0


def test_rejects_a_stack_without_the_workload(cli: Cli) -> None:
    cli.outputs = {"workloads": {"olmo": "kubectl"}, "workloadDetails": {"olmo": {}}}
    assert "the selected stack has no workload resim; its workloads: olmo" in refused(cli, "submit", "--njobs", "4")


def test_rejects_a_cluster_without_the_workload(cli: Cli) -> None:
    del cli.cluster.config_maps["resim-templates"]
    assert "namespace ai has no ConfigMap resim-templates" in refused(cli, "submit", "--njobs", "4")


@case_table(__file__, "storage")
def test_reports_inaccessible_storage(cli: Cli, code: str, error: str) -> None:
    cli.blobs.error = code or " "
    assert error in refused(cli, "submit", "--njobs", "4")


def test_reports_a_missing_role() -> None:
    found = platform("dev", outputs(sas={}), outputs(sas={}))
    error = refusal(error_of("AuthorizationPermissionMismatch"), found.container("output"))
    assert "Storage Blob Data Contributor" in str(error)


# --- kubectl and pulumi ---


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    def put(name: str, script: str) -> None:
        (tmp_path / name).write_text(f"#!/bin/bash\n{script}\n")
        (tmp_path / name).chmod(0o755)

    return put


@case_table(__file__, "kubectl")
def test_reports_errors_of_kubectl(program: Callable[[str, str], None], output: list[str], what: str, fix: str) -> None:
    program("kubectl", "".join(f"echo '{line}' >&2; " for line in output) + "exit 1")
    with processes.kubectl("apiVersion: v1", "ai") as cluster, pytest.raises(Refused) as refused:
        cluster.create({"kind": "Job"})
    assert (refused.value.what, fix in refused.value.fix) == (what, True)


def test_only_the_user_can_read_the_kubeconfig(program: Callable[[str, str], None]) -> None:
    program("kubectl", 'file=${1#--kubeconfig=}; echo "{\\"items\\": [\\"$(stat -c %a "$file") $(cat "$file")\\"]}"')
    with processes.kubectl("apiVersion: v1", "ai") as cluster:
        assert [*map(str, cluster.list("jobs"))] == ["600 apiVersion: v1"]


def test_reports_unreadable_outputs(program: Callable[[str, str], None]) -> None:
    program("pulumi", "echo \"error: no stack named 'nigth' found\" >&2; exit 255")
    with pytest.raises(Refused, match="the outputs of stack nigth cannot be read: error: no stack named 'nigth' found"):
        processes.outputs("nigth")


def test_a_team_stack_uses_its_platforms_containers() -> None:
    own = {"workloadDetails": {"resim": {"namespace": "team"}}, "kubeconfig": "k", "platformStack": "org/p/dev"}
    found = platform("team", own, outputs())
    assert (found.namespace, found.container("output").url) == ("team", f"{URL}/output")
    with pytest.raises(Refused, match="the outputs of stack team have no container outputs"):
        found.container("outputs")


def test_rejects_the_name_of_a_batch_with_another_dataset(cli: Cli) -> None:
    cli("submit", "--njobs", "4", "--name", "night")
    cli.cluster.end()
    made = json.loads(cli.cluster.config_maps["resim-templates"]["data"]["test-io.json"])
    (container,) = made["template"]["spec"]["containers"]
    next(each for each in container["env"] if each["name"] == "INPUT")["value"] = "/input/fleet"
    cli.cluster.config_maps["resim-templates"]["data"]["test-io.json"] = json.dumps(made)
    error = refused(cli, "submit", "--njobs", "4", "--name", "night")
    assert "batch night was submitted with another image, command or dataset than the stack has now" in error
    assert "--name night-" in error
