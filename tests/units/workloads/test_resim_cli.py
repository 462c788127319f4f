"""`python -m workloads.resim`, on a cluster and a container that are kept in memory."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.storage.blob import ContainerClient

from tests.units.workloads.test_resim import made_of
from workloads.resim.cli import arguments, processes
from workloads.resim.cli import session as sessions
from workloads.resim.cli.platform import platform
from workloads.resim.cli.store import refusal
from workloads.resim.refusal import Refused

URL = "https://data.blob.core.windows.net"


class KeptBlobs:
    """A blob container."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.error = ""

    def list_blobs(self, prefix: str) -> list[SimpleNamespace]:
        self._check()
        return [SimpleNamespace(name=name) for name in sorted(self.blobs) if name.startswith(prefix)]

    def download_blob(self, name: str) -> SimpleNamespace:
        self._check()
        if name not in self.blobs:
            error = ResourceNotFoundError("The specified blob does not exist.")
            error.error_code = "BlobNotFound"  # type: ignore[attr-defined]
            raise error
        return SimpleNamespace(readall=lambda: self.blobs[name])

    def upload_blob(self, name: str, data: bytes, *, overwrite: bool) -> None:
        self._check()
        if name in self.blobs and not overwrite:
            raise ResourceExistsError("The specified blob already exists.")
        self.blobs[name] = data

    def finish(self, batch: str, *scenarios: str, attempts: int = 1) -> None:
        """As their pods would."""
        for number, scenario in enumerate(scenarios):
            told = {"node": "aks-t4-1-vmss0", "started": 0, "ended": 60 + number, "attempts": attempts}
            folder = f"ai/{batch}/results/{scenario}"
            self.blobs[f"{folder}/result.json"] = json.dumps({**told, "outputBytes": 100, "inputBytes": 7}).encode()
            self.blobs[f"{folder}/log.txt"] = f"log of {scenario}\n".encode()

    def _check(self) -> None:
        if self.error:
            raise _error(self.error)


class KeptCluster:
    """kubectl, as far as the commands call it."""

    def __init__(self) -> None:
        self.jobs: list[dict[str, Any]] = []
        self.templates: dict[str, Any] | None = {"test-io.json": json.dumps(made_of())}

    def find(self, kind: str, name: str) -> dict[str, Any] | None:
        assert (kind, name) == ("configmap", "resim-templates")
        return {"data": self.templates} if self.templates else None

    def list(self, kind: str, selector: str = "") -> list[dict[str, Any]]:
        if kind != "jobs":
            return []
        key, _, value = selector.partition("=")
        return [job for job in self.jobs if value in ("", job["metadata"]["labels"][key])]

    def create(self, *manifests: dict[str, Any]) -> str:
        self.jobs += manifests
        return ""

    def delete(self, kind: str, selector: str) -> str:
        assert kind == "jobs"
        self.jobs = [job for job in self.jobs if job not in self.list("jobs", selector)]
        return ""

    def log(self, selector: str) -> str:
        return f"of the pod with {selector}"

    def end(self, how: str = "Complete", **status: Any) -> None:
        """All Jobs have ended."""
        for job in self.jobs:
            job["status"] = {**status, "conditions": [{"type": how, "status": "True", "reason": "r", "message": "m"}]}


def outputs(**changes: Any) -> dict[str, Any]:
    expiry = (datetime.now(UTC) + timedelta(hours=40)).isoformat()
    plain = {"url": f"{URL}/output", "expiry": expiry, "rotation": "1", "accountKey": "output"}
    lending = {
        "settings": {"pools": {"t4": {"vmSku": "Standard_NC4as_T4_v3", "spot": "true"}}},
        "containers": {"input": {**plain, "url": f"{URL}/input"}, "output": plain},
    }
    return {
        "workloadDetails": {"resim": {"namespace": "ai"}},
        "kubeconfig": "apiVersion: v1",
        "pools": {"t4": "t4"},
        "platform": lending,
        "sas": {"input": {"sas": "sv=1"}, "output": {"sas": "sv=1"}},
        **changes,
    }


class Cli:
    """The command with what it acts on."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.blobs, self.cluster, self.outputs, self._capsys = KeptBlobs(), KeptCluster(), outputs(), capsys

    def __call__(self, *words: str) -> tuple[int, str]:
        """Exit code, and what is put out; where it fails, what is said of that."""
        code = arguments.main(words)
        out, error = self._capsys.readouterr()
        return code, error if code and not out else out

    def document(self, *words: str) -> Any:
        code, text = self(*words, "--output", "json")
        assert code == 0, text
        return json.loads(text)


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    found = Cli(capsys)
    monkeypatch.setattr(sessions, "outputs", lambda stack: found.outputs)
    monkeypatch.setattr(sessions, "kubectl", lambda *_: nullcontext(found.cluster))
    monkeypatch.setattr(ContainerClient, "from_container_url", lambda *_, **__: nullcontext(found.blobs))
    return found


# --- submit ---


def test_the_seeds_habit(cli: Cli) -> None:
    code, said = cli("submit", "--njobs", "20")
    (job,) = cli.cluster.jobs
    assert (code, job["spec"]["completions"]) == (0, 20)
    name = job["metadata"]["name"].removesuffix("-1")
    assert said.splitlines() == [
        f"job.batch/{name}-1 created",
        f"batch {name}: 20 of 20 scenarios to do; how they fare: python -m workloads.resim status {name}",
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
        "jobs": ["night-2"],
        "scenarios": 4,
        "left": 2,
    }
    assert cli.blobs.blobs["ai/night/runs/2.txt"] == b"scenario-000001\nscenario-000003\n"
    cli.cluster.end()
    cli.blobs.finish("night", "scenario-000001", "scenario-000003")
    assert (
        "all 4 scenarios asked for are done; nothing was created" in cli("submit", "--njobs", "4", "--name", "night")[1]
    )


def test_a_large_batch_is_several_jobs(cli: Cli) -> None:
    begun = cli.document("submit", "--njobs", "250000", "--name", "fleet")
    assert begun["jobs"] == ["fleet-1-0", "fleet-1-1", "fleet-1-2"]
    assert [job["spec"]["completions"] for job in cli.cluster.jobs] == [100_000, 100_000, 50_000]


def test_what_the_stack_says_can_be_said_otherwise_for_one_batch(cli: Cli) -> None:
    cli("submit", "--njobs", "9", "--parallelism", "3", "--hours", "2")
    (job,) = cli.cluster.jobs
    assert (job["spec"]["parallelism"], job["spec"]["activeDeadlineSeconds"]) == (3, 7200)


def refused(cli: Cli, *words: str) -> str:
    """One error of three lines, and nothing begun."""
    jobs, blobs = list(cli.cluster.jobs), dict(cli.blobs.blobs)
    code, said = cli(*words)
    assert (code, cli.cluster.jobs, cli.blobs.blobs) == (1, jobs, blobs)
    assert said.startswith("error: ")
    assert "\n    allowed: " in said
    assert "\n    fix:     " in said
    return said


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"", "has no scenarios"),
        (b"day\nn\xe9v\n", ":2 is not UTF-8"),
        (b"../../etc/passwd\n", "has names that are no file names: line 1 is '../../etc/passwd'"),
        (b"s%d\n" * 1_000_000, "has 1,000,000 scenarios"),
        (b"x" * 60_000_000, "is larger than 51,000,102 bytes"),
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


def test_a_folder_is_no_list(cli: Cli, tmp_path: Path) -> None:
    assert "Is a directory" in refused(cli, "submit", "--scenarios", str(tmp_path))


@pytest.mark.parametrize("count", ["0", "-3", "1000000"])
def test_a_number_that_is_no_batch(cli: Cli, count: str) -> None:
    assert "--njobs" in refused(cli, "submit", f"--njobs={count}")


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


def test_the_name_of_the_stacks_own_batch(cli: Cli) -> None:
    assert "is the stack's own batch" in refused(cli, "submit", "--njobs", "4", "--name", "resim")


def test_a_template_that_is_not_there(cli: Cli) -> None:
    said = refused(cli, "submit", "--njobs", "4", "--template", "metasek")
    assert "--template is metasek" in said
    assert "fix:     --template test-io" in said


def test_a_batch_that_could_outlive_its_sas(cli: Cli) -> None:
    said = refused(cli, "submit", "--njobs", "4", "--hours", "48")
    assert "the SAS of container input ends at " in said
    assert "and a batch of 48 hours could outlive it" in said
    assert "--hours 39, or pulumi config set --path storage.accounts.output.rotation 2 && pulumi up" in said


def test_an_identity_is_not_outlived(cli: Cli) -> None:
    for container in cli.outputs["platform"]["containers"].values():
        del container["expiry"]
    assert cli("submit", "--njobs", "4", "--hours", "4800")[0] == 0


def test_a_stack_without_the_workload(cli: Cli) -> None:
    cli.outputs = {"workloads": {"olmo": "kubectl"}, "workloadDetails": {"olmo": {}}}
    assert "the selected stack has no workload resim; it has olmo" in refused(cli, "submit", "--njobs", "4")


def test_a_cluster_without_the_workload(cli: Cli) -> None:
    cli.cluster.templates = None
    assert "namespace ai has no ConfigMap resim-templates" in refused(cli, "submit", "--njobs", "4")


def _error(code: str) -> HttpResponseError:
    error = HttpResponseError(f"{code}\nand more")
    error.error_code = code  # type: ignore[attr-defined]
    return error


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("AuthenticationFailed", "is not opened by the SAS of the stack's outputs: AuthenticationFailed"),
        ("AuthorizationFailure", "a SAS of that account that has not ended, and for a private account its network"),
        ("AuthorizationPermissionMismatch", "a SAS with racwdlmp"),
        ("", "cannot be used"),
    ],
)
def test_storage_that_lets_nobody_in(cli: Cli, code: str, says: str) -> None:
    cli.blobs.error = code or " "
    assert says in refused(cli, "submit", "--njobs", "4")


def test_a_login_without_a_role() -> None:
    found = platform("dev", outputs(sas={}), outputs(sas={}))
    said = str(refusal(_error("AuthorizationPermissionMismatch"), found.container("output")))
    assert "Storage Blob Data Contributor" in said


# --- status, logs, retry, cancel ---


def test_all_batches_in_a_table(cli: Cli) -> None:
    assert cli("status") == (0, "No batches found.\n")
    cli("submit", "--njobs", "4", "--name", "night")
    cli.cluster.end(succeeded=3, failedIndexes="2")
    assert [line.split() for line in cli("status")[1].splitlines()] == [
        ["BATCH", "STATE", "INDEXES", "SUCCEEDED", "FAILED", "ACTIVE"],
        ["night", "Complete", "4", "3", "1", "0"],
    ]


def test_a_batch_by_its_outputs(cli: Cli) -> None:
    cli("submit", "--njobs", "4", "--name", "night")
    cli.cluster.end()
    cli.blobs.finish("night", "scenario-000000", "scenario-000001", attempts=2)
    cli.blobs.blobs["ai/night/attempts/scenario-000002/night-1-2-x/EVICTED"] = b""
    told = cli.document("status", "night")
    assert (told["succeeded"], told["left"], told["evicted"], told["retried"]) == (2, 2, 1, 2)
    assert (told["inputBytes"], told["outputBytes"], told["seconds"]) == (14, 200, 61.0)
    assert told["cost"]["atMost"]
    assert "2 succeeded" in cli("status", "night")[1]


def test_waiting_for_a_batch_that_fails(cli: Cli) -> None:
    cli("submit", "--njobs", "4", "--name", "night")
    cli.cluster.end("Failed", failedIndexes="0-3")
    assert cli("status", "night", "--wait")[0] == 1
    cli.cluster.end()
    assert cli("status", "night", "--wait")[0] == 0


@pytest.mark.parametrize("command", [("status", "dusk"), ("logs", "dusk", "*"), ("retry", "dusk"), ("cancel", "dusk")])
def test_a_batch_that_is_not_there(cli: Cli, command: tuple[str, ...]) -> None:
    cli("submit", "--njobs", "4", "--name", "night")
    said = refused(cli, *command)
    assert "batch dusk" in said
    assert "allowed: night" in said


def test_logs_lie_beside_the_outputs_and_else_come_from_the_pod(cli: Cli) -> None:
    cli("submit", "--njobs", "4", "--name", "night")
    cli.blobs.finish("night", "scenario-000001")
    cli.blobs.blobs["ai/night/attempts/scenario-000002/night-1-2-x/log.txt"] = b"out of disk\n"
    cli.blobs.blobs["ai/night/attempts/scenario-000002/night-1-2-x/FAILED"] = b""
    assert cli("logs", "night", "1") == (0, "log of scenario-000001\n")
    assert cli("logs", "night", "*")[1].splitlines() == [
        "==> scenario-000000 <==",
        "of the pod with batch.kubernetes.io/job-name=night-1,batch.kubernetes.io/job-completion-index=0",
        "==> scenario-000001 <==",
        "log of scenario-000001",
        "==> scenario-000002 <==",
        "out of disk",
        "==> scenario-000003 <==",
        "of the pod with batch.kubernetes.io/job-name=night-1,batch.kubernetes.io/job-completion-index=3",
    ]


@pytest.mark.parametrize("command", [("logs", "night", "dusk-*"), ("retry", "night", "--only", "17-19")])
def test_a_pattern_that_matches_nothing(cli: Cli, command: tuple[str, ...]) -> None:
    cli("submit", "--njobs", "4", "--name", "night")
    cli.cluster.end()
    assert "matches none of 4 scenarios" in refused(cli, *command)


def test_a_retry_does_what_failed(cli: Cli) -> None:
    cli("submit", "--njobs", "4", "--name", "night")
    cli.cluster.end("Failed")
    cli.blobs.finish("night", "scenario-000000")
    assert cli.document("retry", "night", "--only", "0-1")["left"] == 1
    assert cli.blobs.blobs["ai/night/runs/2.txt"] == b"scenario-000001\n"


def test_a_batch_keeps_its_template(cli: Cli) -> None:
    other = made_of()
    other["template"]["spec"]["containers"][0]["image"] = "metaseq:1"
    cli.cluster.templates = {"metaseq.json": json.dumps(other), "test-io.json": json.dumps(made_of())}
    cli("submit", "--njobs", "1", "--name", "training", "--template", "metaseq")
    for again in (("retry", "training"), ("submit", "--njobs", "1", "--name", "training")):
        cli.cluster.end("Failed")
        assert cli(*again)[0] == 0
    images = [job["spec"]["template"]["spec"]["containers"][0]["image"] for job in cli.cluster.jobs]
    assert images == ["metaseq:1"] * 3


def test_a_cancelled_batch_keeps_what_is_done(cli: Cli) -> None:
    cli("submit", "--njobs", "4", "--name", "night")
    cli.blobs.finish("night", "scenario-000000")
    assert cli("cancel", "night") == (0, "job.batch/night-1 deleted\n")
    assert cli.cluster.jobs == []
    assert cli.document("status", "night")["succeeded"] == 1
    assert cli.document("submit", "--njobs", "4", "--name", "night")["left"] == 3


# --- the commands beneath ---


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Puts a program on PATH."""
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    def put(name: str, script: str) -> None:
        (tmp_path / name).write_text(f"#!/bin/bash\n{script}\n")
        (tmp_path / name).chmod(0o755)

    return put


@pytest.mark.parametrize(
    "said",
    [
        "Unable to connect to the server: dial tcp: lookup x.privatelink.eastus.azmk8s.io: no such host",
        "The connection to the server 127.0.0.1:6443 was refused - did you specify the right host or port?",
        "Unable to connect to the server: dial tcp 10.0.0.4:443: i/o timeout",
    ],
)
def test_an_api_server_out_of_reach(program: Callable[[str, str], None], said: str) -> None:
    program("kubectl", f"echo 'E1123 memcache.go:265] couldnt get' >&2; echo '{said}' >&2; exit 1")
    with processes.kubectl("apiVersion: v1", "ai") as cluster, pytest.raises(Refused) as refused:
        cluster.list("jobs")
    assert refused.value.what == f"the cluster's API server cannot be reached: {said}"
    assert "docs/way-in.md" in refused.value.fix


def test_an_api_server_that_refuses(program: Callable[[str, str], None]) -> None:
    program("kubectl", "echo 'Error from server (Forbidden): jobs.batch is forbidden' >&2; exit 1")
    with processes.kubectl("apiVersion: v1", "ai") as cluster, pytest.raises(Refused) as refused:
        cluster.create({"kind": "Job"})
    assert refused.value.fix == "kubectl auth can-i create jobs --namespace ai"


def test_the_kubeconfig_is_the_stacks_and_only_this_user_can_read_it(program: Callable[[str, str], None]) -> None:
    program("kubectl", 'file=${1#--kubeconfig=}; echo "{\\"items\\": [\\"$(stat -c %a "$file") $(cat "$file")\\"]}"')
    with processes.kubectl("apiVersion: v1", "ai") as cluster:
        assert [*map(str, cluster.list("jobs"))] == ["600 apiVersion: v1"]


def test_outputs_that_cannot_be_read(program: Callable[[str, str], None]) -> None:
    program("pulumi", "echo \"error: no stack named 'nigth' found\" >&2; exit 255")
    with pytest.raises(Refused, match="the outputs of stack nigth cannot be read: error: no stack named 'nigth' found"):
        processes.outputs("nigth")


def test_a_stack_on_anothers_platform_has_its_containers() -> None:
    own = {"workloadDetails": {"resim": {"namespace": "guest"}}, "kubeconfig": "k", "platformStack": "org/p/dev"}
    found = platform("guest", own, outputs())
    assert (found.namespace, found.container("output").url) == ("guest", f"{URL}/output")
    with pytest.raises(Refused, match="container outputs is not among the outputs of stack guest"):
        found.container("outputs")
