from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError

from tests.unit.workloads.test_resim import made_of
from workloads.resim.cli import arguments

URL = "https://data.blob.core.windows.net"


class KeptBlobs:
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
        for number, scenario in enumerate(scenarios):
            result = {"node": "aks-t4-1-vmss0", "started": 0, "ended": 60 + number, "attempts": attempts}
            folder = f"ai/{batch}/results/{scenario}"
            self.blobs[f"{folder}/result.json"] = json.dumps({**result, "outputBytes": 100, "inputBytes": 7}).encode()
            self.blobs[f"{folder}/log.txt"] = f"log of {scenario}\n".encode()

    def _check(self) -> None:
        if self.error:
            raise error_of(self.error)


class KeptCluster:
    def __init__(self) -> None:
        self.namespace = "ai"
        self.jobs: list[dict[str, Any]] = []
        self.pods: list[dict[str, Any]] = []
        self.config_maps: dict[str, dict[str, Any]] = {
            "resim-templates": {"data": {"test-io.json": json.dumps(made_of())}},
            "resim-batches": {"metadata": {"uid": "uid-of-owner"}},
        }

    def find(self, kind: str, name: str) -> dict[str, Any] | None:
        assert kind == "configmap"
        return self.config_maps.get(name)

    def list(self, kind: str, selector: str = "") -> list[dict[str, Any]]:
        key, _, value = selector.partition("=")
        there = {"jobs": self.jobs, "pods": self.pods}.get(kind, [])
        return [each for each in there if value in ("", each["metadata"]["labels"][key])]

    def create(self, manifest: dict[str, Any]) -> None:
        self.jobs.append(manifest)

    def delete(self, kind: str, selector: str) -> None:
        assert kind == "jobs"
        self.jobs = [job for job in self.jobs if job not in self.list("jobs", selector)]

    def pod(self, name: str, batch: str, phase: str) -> None:
        self.pods.append({"metadata": {"name": name, "labels": {"ai-on-aks/batch": batch}}, "status": {"phase": phase}})

    def end(self, condition: str = "Complete", **status: Any) -> None:
        found = {"type": condition, "status": "True", "reason": "r", "message": "m"}
        for job in self.jobs:
            job["status"] = {**status, "conditions": [found]}


def outputs(**changes: Any) -> dict[str, Any]:
    expiry = (datetime.now(UTC) + timedelta(hours=40)).isoformat()
    plain = {"url": f"{URL}/output", "expiry": expiry, "rotation": "1", "accountKey": "output"}
    output = {
        "settings": {"pools": {"t4": {"vmSku": "Standard_NC4as_T4_v3", "spot": "true"}}},
        "containers": {"input": {**plain, "url": f"{URL}/input"}, "output": plain},
    }
    return {
        "workloadDetails": {"resim": {"namespace": "ai"}},
        "kubeconfig": "apiVersion: v1",
        "pools": {"t4": "t4"},
        "platform": output,
        "sas": {"input": {"sas": "sv=1"}, "output": {"sas": "sv=1"}},
        **changes,
    }


class Cli:
    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.blobs, self.cluster, self.outputs, self._capsys = KeptBlobs(), KeptCluster(), outputs(), capsys

    def __call__(self, *words: str) -> tuple[int, str]:
        """Returns exit code and output, or else the error."""
        code = arguments.main(words)
        out, error = self._capsys.readouterr()
        return code, error if code and not out else out

    def document(self, *words: str) -> Any:
        code, text = self(*words, "--output", "json")
        assert code == 0, text
        return json.loads(text)


def refused(cli: Cli, *words: str) -> str:
    jobs, blobs = list(cli.cluster.jobs), dict(cli.blobs.blobs)
    code, error = cli(*words)
    assert (code, cli.cluster.jobs, cli.blobs.blobs) == (1, jobs, blobs)
    assert error.startswith("error: ")
    assert "\n    allowed: " in error
    assert "\n    fix:     " in error
    return error


def error_of(code: str) -> HttpResponseError:
    error = HttpResponseError(f"{code}\nand more")
    error.error_code = code  # type: ignore[attr-defined]
    return error
