from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.data.skus import catalogue
from k8s.objects import Object
from simulator.host import paths
from simulator.kubelet.programs import Holder
from simulator.operators.gpu_operator import dcgm
from simulator.operators.monitoring import certgen, node_exporter, programs, reloader
from simulator.world.faults import new_fault
from simulator.world.hardware import NodeHardware, node_hardware
from tests.support.fake_kube import Context, FakeKube
from tests.unit.simulator.operators.host_pod import HostPod, process

SIZE = catalogue()["Standard_ND96isr_H100_v5"]
HARDWARE = node_hardware(SIZE, "node-0")
SOURCE, RESULT = "/etc/prometheus/config/prometheus.yaml.gz", "/etc/prometheus/config_out/prometheus.env.yaml"
RELOADER = [f"--config-file={SOURCE}", f"--config-envsubst-file={RESULT}", "--watch-interval=0"]


def holder(phase: str = "Running", restarts: str = "Never") -> Holder:
    container = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": "2"}}}
    metadata = {"name": "train-0", "namespace": "blue"}
    spec = {"containers": [container], "restartPolicy": restarts}
    return Holder({"metadata": metadata, "spec": spec, "status": {"phase": phase}}, (0, 1))


def samples(text: str, name: str) -> dict[str, float]:
    lines = [line for line in text.splitlines() if line.startswith(f"{name}{{")]
    return {line[len(name) : line.rindex(" ")]: float(line.rpartition(" ")[2]) for line in lines}


@pytest.mark.parametrize(
    ("held", "busy"),
    [([], 0), ([holder()], 2), ([holder("Pending")], 0), ([holder(restarts="Always")], 0)],
    ids=["no pod", "a job", "a waiting job", "a server"],
)
def test_gpus_are_busy_while_a_job_runs_on_them(held: list[Holder], busy: int) -> None:
    found = samples(dcgm.text(HARDWARE, held), "DCGM_FI_DEV_GPU_UTIL")
    assert (len(found), sum(value > 0 for value in found.values())) == (8, busy)


def test_metrics_name_the_pod_of_an_allocated_gpu() -> None:
    found = samples(dcgm.text(HARDWARE, [holder()]), "DCGM_FI_DEV_XID_ERRORS")
    named = [labels for labels in found if 'namespace="blue",pod="train-0"' in labels and 'container="main"' in labels]
    assert len(named) == 2
    assert sum("pod=" in labels for labels in found) == 2


def broken(kind: str, device: str) -> NodeHardware:
    return node_hardware(SIZE, HARDWARE.node, [new_fault(kind, HARDWARE.node, device)])


@pytest.mark.parametrize(("kind", "xid", "working"), [("gpu", 79, 7), ("ecc", 63, 8)])
def test_a_faulty_gpu_has_its_xid(kind: str, xid: int, working: int) -> None:
    text = dcgm.text(broken(kind, "5"), [])
    assert [value for labels, value in samples(text, "DCGM_FI_DEV_XID_ERRORS").items() if 'gpu="5"' in labels] == [xid]
    assert len(samples(text, "DCGM_FI_DEV_GPU_UTIL")) == working


def test_a_gpu_with_a_failed_row_remap_has_a_metric() -> None:
    found = samples(dcgm.text(broken("remap", "4"), []), "DCGM_FI_DEV_ROW_REMAP_FAILURE")
    assert [labels for labels, value in found.items() if value] == [next(each for each in found if 'gpu="4"' in each)]


def certgen_context(kube: FakeKube, *arguments: str) -> Context:
    secret = ("--namespace=monitoring", "--secret-name=admission")
    return Context(kube, container={"name": "create", "args": [*arguments, *secret]})


def test_the_hook_creates_one_certificate_and_passes_its_ca_to_the_webhooks() -> None:
    kinds = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
    kube = FakeKube(
        *({"kind": kind, "metadata": {"name": "w"}, "webhooks": [{"name": "a", "clientConfig": {}}]} for kind in kinds)
    )
    made = certgen_context(kube, "create", "--host=operator.monitoring.svc,operator")
    certgen.create(made.as_pod_context())
    secret = kube.objects[("Secret", "monitoring", "admission")]["data"]
    certgen.create(made.as_pod_context())
    assert kube.objects[("Secret", "monitoring", "admission")]["data"] == secret
    assert secret.keys() == {"ca", "cert", "key"}
    certgen.patch(certgen_context(kube, "patch", "--webhook-name=w", "--patch-failure-policy=Fail").as_pod_context())
    for kind in kinds:
        (webhook,) = kube.objects[(kind, "", "w")]["webhooks"]
        assert (webhook["clientConfig"]["caBundle"], webhook["failurePolicy"]) == (secret["ca"], "Fail")


def test_infiniband_ports_have_state_and_rate() -> None:
    down = replace(
        HARDWARE, hcas=tuple(replace(hca, state="Down") if not at else hca for at, hca in enumerate(HARDWARE.hcas))
    )
    text = node_exporter.text(down, [])
    states = samples(text, "node_infiniband_state_id").values()
    assert sorted(states) == [1, *[4] * 7]
    assert set(samples(text, "node_infiniband_rate_bytes_per_second").values()) == {400e9 / 8}


def configured(tmp_path: Path, config: Any, **environment: str) -> Any:
    packed = {SOURCE: gzip.compress(yaml.safe_dump(config).encode())}
    (tmp_path / RESULT.lstrip("/")).parent.mkdir(parents=True)
    pod = HostPod(FakeKube(), files=packed, environment=environment, words=tuple(RELOADER), folder=tmp_path)
    reloader.once(pod.as_pod_context())
    return yaml.safe_load((tmp_path / RESULT.lstrip("/")).read_text())


def test_scrapes_through_the_cluster_proxy_with_the_pods_kubeconfig(tmp_path: Path) -> None:
    token = "/var/run/secrets/kubernetes.io/serviceaccount/token"
    scrape: Object = {"job_name": "a", "bearer_token_file": token, "kubernetes_sd_configs": [{"role": "endpoints"}]}
    made = configured(tmp_path, {"scrape_configs": [scrape], "rule_files": ["/etc/prometheus/rules/all/*.yaml"]})
    assert made["scrape_configs"] == [
        {
            "job_name": "a",
            "bearer_token_file": f"{tmp_path}{token}",
            "kubernetes_sd_configs": [{"role": "endpoints", "kubeconfig_file": f"{tmp_path}/kubeconfig"}],
            "proxy_url": "socks5://127.0.0.1:1080",
        }
    ]
    assert made["rule_files"] == [f"{tmp_path}/etc/prometheus/rules/all/*.yaml"]


def test_expands_variables_of_the_container_only(tmp_path: Path) -> None:
    made = configured(tmp_path, {"regex": "$(SHARD);|.+", "other": "$(NONE) $1"}, SHARD="0")
    assert made == {"regex": "0;|.+", "other": "$(NONE) $1"}


def test_rejects_a_missing_configuration(tmp_path: Path) -> None:
    pod = HostPod(FakeKube(), words=tuple(RELOADER), folder=tmp_path)
    with pytest.raises(ValueError, match=SOURCE):
        reloader.once(pod.as_pod_context())


def command(image: str, *arguments: str) -> list[str]:
    return process(programs.PROGRAMS, image).argv(HostPod(FakeKube(), words=arguments).as_pod_context())


def test_programs_listen_on_the_loopback_address_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "tool", lambda name: Path("/tools") / name)
    operator = command(
        "prometheus-operator/prometheus-operator", "--web.listen-address=:10250", "--web.enable-tls=true"
    )
    assert operator[:3] == ["env", "KUBECONFIG=/pod/kubeconfig", "/tools/prometheus-operator"]
    assert [each for each in operator if "listen" in each] == ["--web.listen-address=127.0.0.1:30250"]
    prometheus = command("prometheus/prometheus", f"--config.file={RESULT}", "--storage.tsdb.path=/prometheus", "--x=1")
    assert prometheus[:2] == ["/tools/prometheus", "--x=1"]
    assert "--web.listen-address=127.0.0.1:29090" in prometheus
    assert "--config.file=/pod/etc/prometheus/config_out/prometheus.env.yaml" in prometheus
    metrics = command("kube-state-metrics/kube-state-metrics", "--port=8080")
    assert metrics[-3:] == ["--host=127.0.0.1", "--telemetry-host=127.0.0.1", "--kubeconfig=/pod/kubeconfig"]
