"""The Job by which a team reads what its job has left: within the queue, of no GPU, read-only, gone by itself."""

from __future__ import annotations

from config.data.scheduling import COSCHEDULER, GPU_RESOURCE
from workloads._lib.pods import Mount
from workloads._lib.results import SECONDS, Results

CLAIM = Mount(name="cache", path="/cache", source={"persistentVolumeClaim": {"claimName": "model"}})


def test_it_queues_takes_no_gpu_only_reads_and_leaves_nothing() -> None:
    job = Results(job="train", image="trainer:1", scheduler=COSCHEDULER, mount=CLAIM).manifest()
    assert job["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "default-queue"}
    spec, pod = job["spec"], job["spec"]["template"]["spec"]
    assert (spec["backoffLimit"], spec["ttlSecondsAfterFinished"]) == (0, 0)
    assert (pod["schedulerName"], pod["automountServiceAccountToken"]) == (COSCHEDULER, False)
    (container,) = pod["containers"]
    assert GPU_RESOURCE not in container["resources"]["limits"]
    assert container["command"] == ["sleep", str(SECONDS)]
    assert container["volumeMounts"] == [{"name": "cache", "mountPath": "/cache", "readOnly": True}]
    rights = container["securityContext"]
    assert (rights["runAsNonRoot"], rights["allowPrivilegeEscalation"]) == (True, False)
    assert rights["capabilities"] == {"drop": ["ALL"]}
