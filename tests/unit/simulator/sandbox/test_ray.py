"""The fine-tuning's job on simulated Ray, in real sandboxes with real HTTP: it runs, loses a worker, and continues."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from simulator.sandbox.library import http_api, ray_dashboard
from tests.support.sizes import H200
from tests.unit.simulator.sandbox.ray_and_vllm_pods import Finetuning

LONG = {"epochs": 80, "checkpointSteps": 20}
"""Some seconds, in which something can happen."""
BEGUN = re.compile(r"from step (\d+); loss")
JOB = f"{Finetuning.name}-fghij"


def ask(training: Finetuning, port: int, path: str, name: str = "head") -> tuple[int, str]:
    """What a pod answers over HTTP."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
        connection.sock = training.shim(name).connect(port)
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def once(step: int, act: Callable[[Finetuning], None]) -> Callable[[Finetuning], None]:
    """Acts again and again from that step on."""

    def meanwhile(training: Finetuning) -> None:
        if "submitter" in training.processes and f"step {step}:" in training.log("submitter"):
            act(training)

    return meanwhile


def test_it_trains_to_its_end_and_its_log_is_the_submitters(tmp_path: Path) -> None:
    asked: dict[str, Any] = {}

    def look(training: Finetuning) -> None:
        if not asked:
            for path in ("/api/version", f"/api/jobs/{JOB}", "/api/jobs/other"):
                asked[path] = ask(training, 8265, path)
            asked["node"] = ask(training, 52365, "/api/healthz", "worker-0")

    training = Finetuning(tmp_path, meanwhile=once(10, look), options={"model": "facebook/opt-1.3b"})
    code, log = training.run()
    assert code == 0, log
    lines = (
        f"Job '{JOB}' submitted successfully",
        "1984 examples in 17 steps, from step 0",
        "by docs/performance.md\n",  # no estimate
        "step 10: loss",
        "636,000 tokens/s",  # eight times what was measured
        f"Job '{JOB}' succeeded",
    )
    assert [line for line in lines if line not in log] == [], log
    rows = [json.loads(line) for line in (training.output / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [10, 17]
    assert sorted(file.name for file in (training.output / "checkpoints").iterdir()) == ["step-15.pt", "step-17.pt"]
    assert json.loads((training.output / "result.json").read_text())["steps"] == 17
    assert json.loads(asked["/api/version"][1])["version"] == "4"
    job = json.loads(asked[f"/api/jobs/{JOB}"][1])
    assert (job["status"], job["end_time"]) == ("RUNNING", None)
    assert asked["/api/jobs/other"][0] == 404, "KubeRay takes that for a job that nobody has submitted"
    assert asked["node"] == (200, "raylet: success\ngcs: success")


def test_two_nodes_train_as_one_at_an_estimated_speed_where_none_was_measured(tmp_path: Path) -> None:
    training = Finetuning(tmp_path, nodes=2, sku=H200)
    code, log = training.run()
    assert code == 0, log
    assert "--workers 16" in training.spec["entrypoint"]
    source = "is that of facebook/opt-125m on an H100, by docs/performance.md"
    assert f"{source}; est. for 0.12 billion parameters on H200" in log


def test_without_its_worker_it_waits_for_another_and_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    def replace_it(training: Finetuning) -> None:
        training.processes["worker-0"].kill()
        if training.processes["worker-0"].poll() is not None and "[FailurePolicy]" in training.log("submitter"):
            training.meanwhile = lambda _: None
            training.start("worker-0")

    code, log = Finetuning(tmp_path, meanwhile=once(40, replace_it), options=LONG).run()
    assert code == 0, log
    assert "Error count: 1 (max allowed: 3) Error: The node of worker worker-0 has died" in log
    first, second = map(int, BEGUN.findall(log))
    assert (first, second % 20, second >= 40) == (0, 0, True)
    assert f"Job '{JOB}' succeeded" in log


@pytest.mark.long
def test_where_no_other_worker_comes_the_job_fails_so_that_a_new_cluster_is_tried(tmp_path: Path) -> None:
    lose = once(40, lambda training: training.processes["worker-0"].kill())
    training = Finetuning(tmp_path, meanwhile=lose, options=LONG, patience_s=1)
    _, log = training.run()
    assert "Error count: 4 (max allowed: 3) Error: The worker group startup timed out after 1.0 seconds" in log
    assert f"Job '{JOB}' failed" in log
    training.meanwhile = lambda _: None
    _, log = training.run()
    assert int(BEGUN.findall(log)[0]) >= 40


def test_where_the_heads_node_is_gone_its_probe_ends_the_submitter(tmp_path: Path) -> None:
    """By itself it would wait for ever."""
    asked: list[int] = []

    def lose_the_head(training: Finetuning) -> None:
        probe = training.spec["submitterPodTemplate"]["spec"]["containers"][0]["livenessProbe"]["exec"]["command"]
        with Path(os.devnull).open("r+b") as null:
            asked.append(training.shim("submitter").run(probe, [null.fileno()] * 3))
        training.down.add("head")
        if asked[-1]:
            training.processes["submitter"].kill()

    Finetuning(tmp_path, meanwhile=once(40, lose_the_head), options=LONG).run()
    assert (asked[0], asked[-1]) == (0, 1)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"batch": 12}, "12 packs do not divide among 8 GPUs: take --batch 16"),
        ({"pack": 1024}, "a pack of 1024 tokens has no room for an example of 2048"),
        ({"evaluation": 5000}, "--evaluation is 5000, and may be 0 to 2047: there are 2048 examples"),
        (
            {"pack": 1024, "evaluation": 2048},
            "a pack of 1024 tokens has no room for an example of 2048; --evaluation is 2048, and may be 0 to 2047",
        ),
        ({"dataContainer": "lines"}, "/data has no file *.jsonl"),
    ],
)
def test_what_cannot_be_fails_the_job_with_the_reason(tmp_path: Path, options: Any, told: str) -> None:
    """`ray job logs` ends well all the same: KubeRay asks the dashboard how the job fares."""
    code, log = Finetuning(tmp_path, options=options).run()
    assert code == 0, log
    assert re.search(f"error: .*{re.escape(told)}", log), log
    assert "failed with exit code 2, last available logs" in log


def test_files_of_lines_are_read_and_a_checkpoint_of_other_ones_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for count, told in ((300, "236 examples in"), (400, "is of another training: examples 236 and not 336")):
        lines = [json.dumps({"prompt": "What is this?", "completion": "word " * 200}) for _ in range(count)]
        (tmp_path / "data" / "a.jsonl").write_text("\n".join(lines))
        code, log = Finetuning(tmp_path, options={"dataContainer": "lines"}).run()
        assert code == 0, log
        assert told in log


def test_of_another_rank_it_is_another_training_and_the_first_one_is_kept(tmp_path: Path) -> None:
    first, second = Finetuning(tmp_path), Finetuning(tmp_path, options={"rank": 8})
    begun = [BEGUN.findall(training.run()[1]) for training in (first, second, first)]
    assert begun == [["0"], ["0"], ["17"]], "the first is done already when it comes again"


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
        ("token", "POST", JOBS, {}, HTTPStatus.UNAUTHORIZED),  # nobody runs code without it
        ("disabled", "GET", JOBS, {}, HTTPStatus.OK),
    ],
)
def test_a_head_requires_the_token_of_its_environment(
    monkeypatch: pytest.MonkeyPatch, mode: str, method: str, path: str, headers: dict[str, str], answer: HTTPStatus
) -> None:
    """As Ray 2.60.0 does. A refused request gets its answer, however long its body is."""
    monkeypatch.setenv("RAY_AUTH_MODE", mode)
    monkeypatch.setenv("RAY_AUTH_TOKEN", TOKEN)
    server = http_api.serve("127.0.0.1", 0, ray_dashboard.Dashboard({}).answer)
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    try:
        connection.request(method, path, "x" * 100_000 if method == "POST" else None, headers)
        found = connection.getresponse()
        assert (found.status, found.read() == MISSING) == (answer, answer == HTTPStatus.UNAUTHORIZED)
    finally:
        connection.close()
        server.shutdown()
        server.server_close()
