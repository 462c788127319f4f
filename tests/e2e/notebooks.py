from __future__ import annotations

from k8s.objects import is_ready
from tests.e2e.team_jobs import kubectl
from tests.support.world import Stack, eventually

WORK = "/home/jovyan/work/notes.txt"


def in_notebook(platform: Stack, script: str, namespace: str = "ai") -> str:
    labels = "app.kubernetes.io/name=jupyterlab"

    def ready() -> bool:
        return any(map(is_ready, platform.kube.list("v1", "Pod", namespace, labels=labels)))

    eventually(ready, "the notebook runs", 180)
    return kubectl(platform, "exec", "-n", namespace, "deploy/jupyterlab", "--", "bash", "-c", script)


def claim(platform: Stack, namespace: str = "ai") -> str:
    found = platform.kube.get("v1", "PersistentVolumeClaim", "jupyterlab", namespace)
    assert found["status"]["phase"] == "Bound"
    uid: str = found["metadata"]["uid"]
    return uid


def try_to_destroy(platform: Stack) -> str:
    """Runs a `pulumi destroy` that must fail without deleting anything. Returns its output on one line."""
    before = platform.pulumi("stack", "export").count('"urn":')
    output = " ".join(platform.pulumi("destroy", "--yes", "--skip-preview", check=False).split())
    assert platform.returncode
    assert platform.pulumi("stack", "export").count('"urn":') == before
    return output
