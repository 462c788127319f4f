from __future__ import annotations

import contextlib
import functools
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx
import yaml

from k8s.objects import Object
from simulator.azure import subscription, trust
from simulator.azure.registries import Registries
from simulator.command import images
from simulator.host import paths
from simulator.kube.client import KubeClient
from tests.support.waiting import eventually as eventually
from tests.support.waiting import eventually_equals as eventually_equals

PARTS = ("__main__.py", "Pulumi.yaml", "components", "config", "workloads", "simulator", "docker", "requirements.txt")
ALTERED = """import runpy
import sys

sys.path.insert(0, {root!r})
{alteration}
runpy.run_path({program!r}, run_name="__main__")
"""


class CommandFailed(AssertionError):
    """A failed command; the message has its output."""


@dataclass
class World:
    home: Path
    _clients: dict[str, KubeClient] = field(default_factory=dict)

    @functools.cached_property
    def environment(self) -> dict[str, str]:
        """The environment of `make shell`, also while the simulator is stopped."""
        return self.entered()

    def entered(self, *arguments: str) -> dict[str, str]:
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(("SIMULATOR_", "PULUMI_"))}
        inherited |= {"SIMULATOR_HOME": str(self.home), "PYTHONPATH": str(paths.ROOT)}
        lines = subprocess.run(
            [sys.executable, "-m", "simulator", "env", *arguments],
            env=inherited,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        shell = ["bash", "-c", f"{lines}\nenv -0"]
        listed = subprocess.run(shell, env=inherited, capture_output=True, text=True, check=True).stdout
        return dict(entry.split("=", 1) for entry in listed.split("\0") if "=" in entry)

    def simulator(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return self.run([sys.executable, "-m", "simulator", *arguments], check=check)

    def run(
        self,
        command: list[str],
        *,
        cwd: Path = paths.ROOT,
        check: bool = True,
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        env = environment or self.environment
        answer = subprocess.run(command, env=env, cwd=cwd, capture_output=True, text=True, check=False)
        if check and answer.returncode:
            raise CommandFailed(f"{' '.join(command)}\n{answer.stdout}\n{answer.stderr}")
        return answer

    def arm(self, method: str, path: str, body: Object | None = None) -> Object:
        """The path is below the subscription. Waits for the end of a long-running operation."""
        token = Path(self.environment["SIMULATOR_ARM_TOKEN_FILE"]).read_text().strip()
        endpoint, trusting = self.environment["SIMULATOR_ARM_ENDPOINT"], trust.client(self.home)
        with httpx.Client(base_url=endpoint, timeout=60, verify=trusting) as http:
            http.headers["Authorization"] = f"Bearer {token}"
            answer = http.request(method, f"/subscriptions/{subscription.load().subscription_id}/{path}", json=body)
            answer.raise_for_status()
            if operation := answer.headers.get("Azure-AsyncOperation"):
                eventually(lambda: http.get(operation).json()["status"] != "InProgress", f"{method} {path} ends")
            elif result := answer.headers.get("Location"):
                eventually(lambda: http.get(result).status_code != HTTPStatus.ACCEPTED, f"{method} {path} ends")
        found: Object = answer.json() if answer.content else {}
        return found

    def kubeconfig(self, stack: str) -> Path:
        name = f"ai-on-aks-{stack}"
        return self.home / "clusters" / f"{name}+{name}" / "admin.kubeconfig"

    def kube(self, stack: str) -> KubeClient:
        kubeconfig = self.kubeconfig(stack).read_text()
        if kubeconfig not in self._clients:
            self._clients[kubeconfig] = KubeClient.from_kubeconfig(kubeconfig)
        return self._clients[kubeconfig]

    def close(self) -> None:
        for client in self._clients.values():
            client.close()


@dataclass
class Stack:
    """`alter` runs Python code before the program."""

    world: World
    name: str
    folder: Path
    inside: str = ""
    """The network of its commands, as in the simulator's commands; empty outside all networks."""
    pushes_images: bool = True
    """Whether an `up` pushes the images of `docker/`, like `make up`."""

    @classmethod
    def create(cls, world: World, name: str, folder: Path, config: Mapping[str, Any], like: str = "dev") -> Stack:
        """Creates a stack with the settings of the stack `like`, changed by `config`.

        Charts in the folder UPSTREAM_CHARTS replace the simulator's.
        """
        folder.mkdir(parents=True)
        for part in PARTS:
            (folder / part).symlink_to(paths.ROOT / part)
        stack = cls(world, name, folder)
        settings = yaml.safe_load((paths.ROOT / f"Pulumi.{like}.yaml").read_text())
        if charts := settings["config"].get("ai-on-aks:charts"):
            charts["source"] = os.environ.get("UPSTREAM_CHARTS", charts["source"])
        stack._write(settings)
        stack.set(**config)
        stack.pulumi("stack", "init", name)
        return stack

    def set(self, **config: Any) -> None:
        """None removes a setting."""
        settings = yaml.safe_load(self._file.read_text())
        for key, value in config.items():
            settings["config"].pop(f"ai-on-aks:{key}", None)
            if value is not None:
                settings["config"][f"ai-on-aks:{key}"] = value
        self._write(settings)

    def alter(self, code: str) -> None:
        """Runs `code` before the program, to emulate a mistake; an empty string restores the program."""
        program = self.folder / "__main__.py"
        program.unlink()
        if code:
            original = str(paths.ROOT / "__main__.py")
            program.write_text(ALTERED.format(root=str(paths.ROOT), alteration=code, program=original))
        else:
            program.symlink_to(paths.ROOT / "__main__.py")

    @property
    def environment(self) -> dict[str, str]:
        return self.world.entered("--inside", self.inside) if self.inside else self.world.environment

    def pulumi(self, *arguments: str, check: bool = True) -> str:
        command = ["pulumi", *arguments, "--non-interactive"]
        chosen = ["--stack", self.name] if arguments[0] != "stack" else []
        pushed = images.registering(Registries(self.world.home / "registries"))
        with pushed if arguments[0] == "up" and self.pushes_images else contextlib.nullcontext():
            answer = self.world.run([*command, *chosen], cwd=self.folder, check=check, environment=self.environment)
        self.returncode = answer.returncode
        return answer.stdout + answer.stderr

    def up(self, *arguments: str, check: bool = True) -> str:
        return self.pulumi("up", "--yes", "--skip-preview", *arguments, check=check)

    def steps(self, *arguments: str) -> dict[str, str]:
        """Runs `up` and returns operations by `<type> <name>`, without unchanged resources."""
        found: dict[str, str] = {}
        for name, step in self._events("resourcePreEvent", "up", *arguments):
            found.setdefault(name, step["op"])
        return found

    def preview_steps(self) -> dict[str, Object]:
        preview, _ = json.JSONDecoder().raw_decode(self.pulumi("preview", "--json"))  # warnings may follow it
        named = ((step["urn"].split("::")[2:], step) for step in preview["steps"])
        return {f"{types.rpartition('$')[2]} {name}": step for (types, name), step in named}

    def refresh(self) -> dict[str, list[str]]:
        """Returns changed top-level properties by `<type> <name>`; none for a deleted resource."""
        return {
            name: sorted({path.partition(".")[0].partition("[")[0] for path in step.get("detailedDiff") or ()})
            for name, step in self._events("resOutputsEvent", "refresh")
        }

    def _events(self, kind: str, *command: str) -> Iterator[tuple[str, Object]]:
        for line in self.pulumi(*command, "--yes", "--skip-preview", "--json").splitlines():
            event = json.loads(line) if line.startswith("{") else {}
            step = event.get(kind, {}).get("metadata")
            if step and step["op"] not in ("same", "read", "refresh"):
                _, _, types, name = step["urn"].split("::")
                yield f"{types.rpartition('$')[2]} {name}", step

    def destroy(self, *arguments: str) -> str:
        return self.pulumi("destroy", "--yes", "--skip-preview", *arguments)

    def discard(self) -> None:
        """Deletes the stack's resource group, then its state, ten times as fast as `destroy`."""
        try:
            self.world.arm("DELETE", f"resourceGroups/ai-on-aks-{self.name}?api-version=2024-03-01")
        except httpx.HTTPStatusError as error:
            if error.response.status_code != HTTPStatus.NOT_FOUND:  # never deployed, or destroyed
                raise
        self.pulumi("stack", "rm", "--yes", "--force", self.name)

    def outputs(self, *arguments: str) -> Object:
        answer = self.world.run(
            ["pulumi", "stack", "output", "--json", "--stack", self.name, "--non-interactive", *arguments],
            cwd=self.folder,
            environment=self.environment,
        )
        found: Object = json.loads(answer.stdout)
        return found

    def workloads(self) -> Object:
        found: Object = self.outputs("--show-secrets")["workloadDetails"]
        return found

    def diagnose(self, *workload: str, namespace: str = "ai") -> str:
        """Returns the output for the platform without a workload."""
        kubeconfig = f"KUBECONFIG={self.world.kubeconfig(self.name)}"
        command = ["env", kubeconfig, sys.executable, "-m", "diagnosis", "-n", namespace, *workload]
        return " ".join(self.world.run(command).stdout.split())

    @property
    def kube(self) -> KubeClient:
        return self.world.kube(self.name)

    @property
    def _file(self) -> Path:
        return self.folder / f"Pulumi.{self.name}.yaml"

    def _write(self, settings: Object) -> None:
        self._file.write_text(yaml.safe_dump(settings))


def job_phase(kube: KubeClient, name: str = "nccl-allreduce", namespace: str = "ai") -> str:
    job = kube.find("batch.volcano.sh/v1alpha1", "Job", name, namespace)
    return ((job or {}).get("status") or {}).get("state", {}).get("phase", "") or "Pending"


def wait_for_end(kube: KubeClient, name: str = "nccl-allreduce") -> str:
    final = ("Completed", "Failed", "Terminated", "Aborted")
    phase: str = eventually(lambda: (p := job_phase(kube, name)) in final and p, f"job {name} ends", 180, every=0.5)
    return phase


def log(kube: KubeClient, pod: str = "nccl-allreduce-mpimaster-0", namespace: str = "ai") -> str:
    return kube.text(f"/api/v1/namespaces/{namespace}/pods/{pod}/log")


def gpu_nodes(kube: KubeClient) -> list[Object]:
    return kube.list("v1", "Node", labels="kubernetes.azure.com/mode=user")


def names(objects: Iterable[Object]) -> list[str]:
    return sorted(obj["metadata"]["name"] for obj in objects)
