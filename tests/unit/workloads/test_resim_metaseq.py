from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

from config.problems.fixes import path_text
from config.schema.pools import PoolSettings
from tests.support.case_files import case_table
from tests.support.pools import RDMA, candidate, pool
from tests.support.sizes import H100, T4
from tests.support.waiting import eventually
from tests.unit.workloads.test_resim import run
from workloads.resim import metaseq
from workloads.resim.manifests import blueprint, load_of_training
from workloads.resim.options import MetaseqTemplate

A100 = "Standard_NC48ads_A100_v4"


def template(size: str = A100) -> tuple[dict[str, Any], dict[str, str]]:
    options = MetaseqTemplate(pool="a100", num_updates=7)
    of_batch = run(outputFiles=3, outputSize="4Ki")
    of_scenario = metaseq.training(options, pool(size, agent_pool="a1001", max_nodes=5), "metaseq:1", RDMA)
    load = load_of_training(of_batch.options, of_scenario)
    return blueprint(of_batch, load), dict(load.files.contents)


def test_each_scenario_uses_all_gpus_of_a_node() -> None:
    made_of, _ = template()
    pod = made_of["template"]["spec"]
    (container,) = pod["containers"]
    assert (made_of["parallelism"], container["resources"]["limits"]) == (5, {"nvidia.com/gpu": "2"})
    assert (container["name"], container["image"]) == ("resim", "metaseq:1"), "the rules name this container"
    assert "'values': ['a1001']" in str(pod["affinity"])
    assert {mount["mountPath"] for mount in container["volumeMounts"]} >= {"/input", "/output", "/opt/resim"}


def test_trains_like_the_workload_metaseq() -> None:
    made_of, contents = template()
    (container,) = made_of["template"]["spec"]["containers"]
    variables = {each["name"]: each.get("value") for each in container["env"]}
    assert container["command"] == ["/bin/bash", "/opt/resim/run-scenario.sh", "/bin/bash", "/opt/resim/metaseq.sh"]
    assert (variables["NODES"], variables["GPUS_PER_NODE"], variables["GPUS"]) == ("1", "2", "2")
    assert (variables["OUTPUT_FILES"], variables["OUTPUT_SIZE"]) == ("3", "4Ki")
    assert contents["arguments"].endswith("--max-update\n7\n")
    assert {"hosts.sh", "train.sh", "throughput.sh", "mfu.sh", "run-scenario.sh", "metaseq.sh"} <= set(contents)


def test_nccl_finds_the_topology_file() -> None:
    made_of, contents = template(H100)
    assert "topology.xml" in contents
    assert {"name": "NCCL_TOPO_FILE", "value": "/opt/resim/topology.xml"} in made_of["template"]["spec"]["containers"][
        0
    ]["env"]


def problems(options: dict[str, Any], **of_pool: Any) -> list[tuple[str, str, str]]:
    spot = PoolSettings(vm_sku=T4)
    pools = {"spot": spot, "a100": PoolSettings(vm_sku=A100, **of_pool)}
    path = ("pools", "spot")
    where = candidate(
        pool=spot, pool_path=path, most_path=(*path, "count"), pool_key="spot", pools=pools, scratch=False
    )
    found = metaseq.problems(MetaseqTemplate.model_validate(options), where)
    return [(path_text(problem.path), problem.what, problem.fix) for problem in found]


def test_accepts_a_suitable_pool() -> None:
    assert problems({"pool": "a100"}) == []


@case_table(__file__, "refused")
def test_rejects_trainings_that_cannot_run(
    options: dict[str, Any], of_pool: dict[str, Any], where: str, what: str, fix: str
) -> None:
    assert problems(options, **of_pool) == [(where, what, fix)]


# --- the script ---


def start(folder: Path, mpirun: str) -> subprocess.Popen[str]:
    _, contents = template()
    for name, text in {**contents, "mpirun": f"#!/bin/bash\n{mpirun}\n"}.items():
        (folder / name).write_text(text)
    (folder / "mpirun").chmod(0o755)
    (folder / "input" / "night-7").mkdir(parents=True)
    (folder / "input" / "night-7" / "drive").write_bytes(b"d" * 70)
    (folder / "input" / "other").write_bytes(b"d" * 5000)
    (folder / "output").mkdir()
    environment = {
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "SCENARIO": "night-7",
        "INPUT": str(folder / "input"),
        "OUTPUT": str(folder / "output"),
        "STATS": str(folder / "stats"),
        **{"NODES": "1", "GPUS_PER_NODE": "2", "CORES_PER_GPU": "24", "NCCL_DEBUG": "INFO"},
        **{"OUTPUT_FILES": "2", "OUTPUT_SIZE": "4Ki"},
        **{"GPUS": "2", "FLOPS_PER_TOKEN": "9.1e9", "PEAK_FLOPS": "6.24e14"},
    }
    command = ["bash", str(folder / "metaseq.sh")]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )


def test_reads_inputs_trains_and_writes_outputs(tmp_path: Path) -> None:
    with start(tmp_path, 'while [[ $1 != --hostfile ]]; do shift; done; cat "$2"; shift 2; echo "$@"') as process:
        text, _ = process.communicate(timeout=60)
    assert process.returncode == 0, text
    log = (tmp_path / "output" / "training.log").read_text().splitlines()
    assert log[0] == "localhost slots=2"
    assert log[1].startswith("-np 2 --map-by ppr:2:node:pe=24 ")
    assert log[1].endswith(f"-x NCCL_DEBUG -x PATH bash {tmp_path}/train.sh localhost")
    sizes = {file.name: file.stat().st_size for file in (tmp_path / "output").glob("*.bin")}
    assert sizes == {"output-0.bin": 4096, "output-1.bin": 4096}
    assert (tmp_path / "stats").read_text() == '"inputBytes": 70\n'


def test_a_failed_training_fails_the_scenario(tmp_path: Path) -> None:
    with start(tmp_path, "echo out of memory; exit 3") as process:
        text, _ = process.communicate(timeout=60)
    assert (process.returncode, "out of memory" in text) == (3, True)


def test_a_training_stops_at_sigterm(tmp_path: Path) -> None:
    process = start(tmp_path, "echo training; sleep 60")
    log = tmp_path / "output" / "training.log"
    eventually(lambda: log.exists() and "training" in log.read_text(), "it trains", 20)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=20)
    assert process.returncode == 143
