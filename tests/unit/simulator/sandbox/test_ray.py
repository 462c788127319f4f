from __future__ import annotations

import http.client
import json
import os
import re
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from simulator.sandbox.library import http_api, ray_jobs
from tests.unit.simulator.sandbox.ray_and_vllm_pods import Finetuning

LONG = {"epochs": 80, "checkpointSteps": 20}
BEGUN = re.compile(r"from step (\d+); loss")
JOB = f"{Finetuning.name}-fghij"


def from_step(step: int, act: Callable[[Finetuning], None]) -> Callable[[Finetuning], None]:
    """Returns a callback that acts at each call after that step."""

    def meanwhile(training: Finetuning) -> None:
        if "submitter" in training.processes and f"step {step}:" in training.log("submitter"):
            act(training)

    return meanwhile


@pytest.mark.parametrize("nodes", [1, 2])
def test_trains_to_the_end_and_the_submitter_prints_the_log(tmp_path: Path, nodes: int) -> None:
    training = Finetuning(tmp_path, nodes=nodes, options={"model": "facebook/opt-1.3b"})
    code, log = training.run()
    assert code == 0, log
    assert f"--workers {8 * nodes}" in training.spec["entrypoint"]
    lines = (
        f"Job '{JOB}' submitted successfully",
        "1984 examples in 17 steps, from step 0",
        f"Job '{JOB}' succeeded",
    )
    assert [line for line in lines if line not in log] == [], log
    rows = [json.loads(line) for line in (training.output / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [10, 17]
    assert sorted(file.name for file in (training.output / "checkpoints").iterdir()) == ["step-15.pt", "step-17.pt"]
    assert json.loads((training.output / "result.json").read_text())["steps"] == 17


def test_continues_from_its_checkpoint_with_another_worker(tmp_path: Path) -> None:
    def replace_worker(training: Finetuning) -> None:
        training.processes["worker-0"].kill()
        if training.processes["worker-0"].poll() is not None and "[FailurePolicy]" in training.log("submitter"):
            training.meanwhile = lambda _: None
            training.start("worker-0")

    code, log = Finetuning(tmp_path, meanwhile=from_step(40, replace_worker), options=LONG).run()
    assert code == 0, log
    assert "Error count: 1 (max allowed: 3) Error: The node of worker worker-0 has died" in log
    first, second = map(int, BEGUN.findall(log))
    assert (first, second % 20, second >= 40) == (0, 0, True)
    assert f"Job '{JOB}' succeeded" in log


@pytest.mark.long
def test_fails_without_another_worker_so_that_a_new_cluster_is_tried(tmp_path: Path) -> None:
    lose = from_step(40, lambda training: training.processes["worker-0"].kill())
    training = Finetuning(tmp_path, meanwhile=lose, options=LONG, start_timeout_s=1)
    _, log = training.run()
    assert "Error count: 4 (max allowed: 3) Error: The worker group startup timed out after 1.0 seconds" in log
    assert f"Job '{JOB}' failed" in log
    training.meanwhile = lambda _: None
    _, log = training.run()
    assert int(BEGUN.findall(log)[0]) >= 40


def test_the_probe_ends_the_submitter_if_the_node_of_the_head_is_lost(tmp_path: Path) -> None:
    asked: list[int] = []

    def lose_the_head(training: Finetuning) -> None:
        probe = training.spec["submitterPodTemplate"]["spec"]["containers"][0]["livenessProbe"]["exec"]["command"]
        with Path(os.devnull).open("r+b") as null:
            asked.append(training.shim("submitter").run(probe, [null.fileno()] * 3))
        training.down.add("head")
        if asked[-1]:
            training.processes["submitter"].kill()

    Finetuning(tmp_path, meanwhile=from_step(40, lose_the_head), options=LONG).run()
    assert (asked[0], asked[-1]) == (0, 1)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"batch": 12}, "8 GPUs cannot share 12 packs equally: use --batch 16"),
        ({"dataContainer": "lines"}, "/data has no file *.jsonl"),
    ],
)
def test_a_wrong_setting_fails_the_job_with_the_reason(tmp_path: Path, options: Any, error: str) -> None:
    """`ray job logs` still exits with 0: KubeRay asks the dashboard for the job's state."""
    code, log = Finetuning(tmp_path, options=options).run()
    assert code == 0, log
    assert re.search(f"error: .*{re.escape(error)}", log), log
    assert "failed with exit code 2, last available logs" in log


def test_reads_files_of_lines_and_rejects_a_checkpoint_of_other_files(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for count, expected in ((300, "236 examples in"), (400, "examples is 236 instead of 336")):
        lines = [json.dumps({"prompt": "What is this?", "completion": "word " * 200}) for _ in range(count)]
        (tmp_path / "data" / "a.jsonl").write_text("\n".join(lines))
        code, log = Finetuning(tmp_path, options={"dataContainer": "lines"}).run()
        assert code == 0, log
        assert expected in log


TOKEN = "0123"
JOBS, MISSING = "/api/jobs/", b"Unauthorized: Missing authentication token"


@pytest.mark.parametrize(
    ("mode", "method", "path", "headers", "answer"),
    [
        ("token", "GET", JOBS, {}, HTTPStatus.UNAUTHORIZED),
        ("token", "GET", JOBS, {"Authorization": "Bearer other"}, HTTPStatus.FORBIDDEN),
        ("token", "GET", JOBS, {"Authorization": f"Bearer {TOKEN}"}, HTTPStatus.OK),
        ("token", "GET", JOBS, {"x-ray-authorization": f"Bearer {TOKEN}"}, HTTPStatus.OK),
        ("token", "GET", "/api/gcs_healthz", {}, HTTPStatus.OK),  # a kubelet's probe
        ("token", "POST", JOBS, {}, HTTPStatus.UNAUTHORIZED),
        ("disabled", "GET", JOBS, {}, HTTPStatus.OK),
        ("disabled", "GET", f"{JOBS}other", {}, HTTPStatus.NOT_FOUND),  # KubeRay then submits the job
    ],
)
def test_a_head_requires_the_token_of_its_environment(
    monkeypatch: pytest.MonkeyPatch, mode: str, method: str, path: str, headers: dict[str, str], answer: HTTPStatus
) -> None:
    """A rejected request gets its answer, also with a long body."""
    monkeypatch.setenv("RAY_AUTH_MODE", mode)
    monkeypatch.setenv("RAY_AUTH_TOKEN", TOKEN)
    server = http_api.serve("127.0.0.1", 0, ray_jobs.Dashboard({}).answer)
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    try:
        connection.request(method, path, "x" * 100_000 if method == "POST" else None, headers)
        found = connection.getresponse()
        text = found.read()
        assert (found.status, text == MISSING) == (answer, answer == HTTPStatus.UNAUTHORIZED)
        assert path != JOBS or answer != HTTPStatus.OK or text == b"[]"
    finally:
        connection.close()
        server.shutdown()
        server.server_close()
