"""The fine-tuning's job on played Ray, in real sandboxes: it runs, loses a worker, and goes on where it was."""

from __future__ import annotations

import http.client
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from simulator.sandbox import sandbox
from tests.support.pools import H200
from tests.units.simulator.sandbox.finetuning import NAME, Finetuning, Processes

LONG = {"epochs": 80, "checkpointSteps": 20}
"""Some seconds, in which something can happen."""
BEGUN = re.compile(r"from step (\d+); loss")


@pytest.fixture(scope="module", autouse=True)
def _needs_sandbox() -> None:
    assert sandbox.available() is None


def ask(training: Finetuning, port: int, path: str, name: str = "head") -> tuple[int, str]:
    """What a pod answers over HTTP."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.sock = training.shim(name).connect(port)
    connection.request("GET", path)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def test_it_trains_to_its_end_and_its_log_is_the_submitters(tmp_path: Path) -> None:
    asked: dict[str, Any] = {}

    def look(training: Finetuning, processes: Processes) -> None:
        if "submitter" in processes and "step 10:" in training.log("submitter") and not asked:
            for path in ("/api/version", f"/api/jobs/{NAME}-fghij", "/api/jobs/other"):
                asked[path] = ask(training, 8265, path)
            asked["node"] = ask(training, 52365, "/api/healthz", "worker-0")

    training = Finetuning(tmp_path, meanwhile=look, options={"model": "facebook/opt-1.3b"})
    code, log = training.run()
    assert code == 0, log
    assert f"Job '{NAME}-fghij' submitted successfully" in log
    assert "1984 examples in 17 steps, from step 0" in log
    assert "by docs/performance.md\n" in log, "no estimate"
    assert "step 10: loss" in log
    assert "636,000 tokens/s" in log, "eight times what was measured"
    assert f"Job '{NAME}-fghij' succeeded" in log
    rows = [json.loads(line) for line in (training.output / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [10, 17]
    assert sorted(file.name for file in (training.output / "checkpoints").iterdir()) == ["step-15.pt", "step-17.pt"]
    assert json.loads((training.output / "result.json").read_text())["steps"] == 17
    assert json.loads(asked["/api/version"][1])["version"] == "4"
    job = json.loads(asked[f"/api/jobs/{NAME}-fghij"][1])
    assert (job["status"], job["end_time"]) == ("RUNNING", None)
    assert asked["/api/jobs/other"][0] == 404, "KubeRay takes that for a job that nobody has submitted"
    assert asked["node"] == (200, "raylet: success\ngcs: success")


def test_what_was_not_measured_is_said_to_be_an_estimate(tmp_path: Path) -> None:
    _, log = Finetuning(tmp_path, sku=H200).run()
    assert (
        "is that of facebook/opt-125m on an H100, by docs/performance.md; est. for 0.12 billion parameters on H200"
        in log
    )


def lose_the_worker(training: Finetuning, processes: Processes) -> None:
    """For good, once there is something to go on from."""
    if "submitter" in processes and "step 40:" in training.log("submitter"):
        processes["worker-0"].kill()


def test_without_its_worker_it_waits_for_another_and_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    def replace_it(training: Finetuning, processes: Processes) -> None:
        lose_the_worker(training, processes)
        if processes["worker-0"].poll() is not None and "[FailurePolicy]" in training.log("submitter"):
            training.meanwhile = lambda *_: None
            training.start("worker-0", processes)

    code, log = Finetuning(tmp_path, meanwhile=replace_it, options=LONG).run()
    assert code == 0, log
    assert "Error count: 1 (max allowed: 3) Error: The node of worker worker-0 has died" in log
    first, second = map(int, BEGUN.findall(log))
    assert (first, second % 20) == (0, 0)
    assert second >= 40
    assert f"Job '{NAME}-fghij' succeeded" in log


def test_where_no_other_worker_comes_the_job_fails_so_that_a_new_cluster_is_tried(tmp_path: Path) -> None:
    training = Finetuning(tmp_path, meanwhile=lose_the_worker, options=LONG, patience_s=1)
    _, log = training.run()
    assert "Error count: 4 (max allowed: 3) Error: The worker group startup timed out after 1.0 seconds" in log
    assert f"Job '{NAME}-fghij' failed" in log
    training.meanwhile = lambda *_: None
    _, log = training.run()
    assert int(BEGUN.findall(log)[0]) >= 40


def test_two_nodes_train_as_one(tmp_path: Path) -> None:
    training = Finetuning(tmp_path, nodes=2)
    code, log = training.run()
    assert code == 0, log
    assert "--workers 16" in training.spec["entrypoint"]


def test_where_the_heads_node_is_gone_its_probe_ends_the_submitter(tmp_path: Path) -> None:
    """By itself it would wait for ever."""
    asked: list[int] = []

    def lose_the_head(training: Finetuning, processes: Processes) -> None:
        if "submitter" not in processes or "step 40:" not in training.log("submitter"):
            return
        probe = training.spec["submitterPodTemplate"]["spec"]["containers"][0]["livenessProbe"]["exec"]["command"]
        with Path(os.devnull).open("r+b") as null:
            asked.append(training.shim("submitter").run(probe, [null.fileno()] * 3))
        training.down.add("head")
        if asked[-1]:
            processes["submitter"].kill()

    Finetuning(tmp_path, meanwhile=lose_the_head, options=LONG).run()
    assert (asked[0], asked[-1]) == (0, 1)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"batch": 12}, "12 packs do not divide among 8 GPUs: take --batch 16"),
        ({"pack": 1024}, "a pack of 1024 tokens has no room for an example of 2048"),
        ({"evaluation": 5000}, "--evaluation is 5000, and may be 0 to 2047: there are 2048 examples"),
        (
            {"pack": 1024, "evaluation": 2048},
            "no room for an example of 2048; --evaluation is 2048, and may be 0 to 2047",
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


def of_lines(folder: Path, count: int) -> str:
    """The log of one that learns a file of so many lines."""
    (folder / "data").mkdir(exist_ok=True)
    lines = [json.dumps({"prompt": "What is this?", "completion": "word " * 200}) for _ in range(count)]
    (folder / "data" / "a.jsonl").write_text("\n".join(lines))
    code, log = Finetuning(folder, options={"dataContainer": "lines"}).run()
    assert code == 0, log
    return log


def test_files_of_lines_are_read_and_a_checkpoint_of_other_ones_is_refused(tmp_path: Path) -> None:
    assert "236 examples in" in of_lines(tmp_path, 300)
    assert "is of another training: examples 236 and not 336" in of_lines(tmp_path, 400)


def test_of_another_rank_it_is_another_training_and_the_first_one_is_kept(tmp_path: Path) -> None:
    first, second = Finetuning(tmp_path), Finetuning(tmp_path, options={"rank": 8})
    begun = [BEGUN.findall(training.run()[1]) for training in (first, second, first)]
    assert begun == [["0"], ["0"], ["17"]], "the first is done already when it comes again"
