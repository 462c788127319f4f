"""Finds the programs for container images."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from k8s.objects import Object
from simulator.kubelet.programs import Controller, Gate, HostProcess, ImageProgram, OneShot, Page
from simulator.kubelet.pulls import repository
from simulator.kubelet.runner import Runnable, Script


class PodCatalogue:
    """The programs of operators and schedulers, and of images that run as scripts in a sandbox."""

    def __init__(
        self, programs: Sequence[ImageProgram], script: Callable[[str], Script | None], *, runs_scripts: bool = True
    ) -> None:
        """If this machine cannot run sandboxes, `runs_scripts` is False and `script` returns None."""
        self._programs, self._script, self.runs_scripts = programs, script, runs_scripts

    def claims(self, container: Object) -> list[ImageProgram]:
        name = repository(container["image"])
        words = [*container.get("command", []), *container.get("args", [])]
        text = " ".join(words)
        return [
            program
            for program in self._programs
            if (name == program.image or name.endswith("/" + program.image)) and program.command in text
        ]

    def runnable(self, container: Object) -> Runnable:
        for claim in self.claims(container):
            if claim.program is not None:
                return claim.program
        return self._script(repository(container["image"]))

    def controller(self, container: Object) -> Controller | None:
        program = self.runnable(container)
        return program if isinstance(program, Controller) else None

    def gates(self, container: Object) -> list[Gate]:
        return [claim.gate for claim in self.claims(container) if claim.gate is not None]

    def page(self, pod: Object) -> tuple[Page, int] | None:
        for container in pod["spec"]["containers"]:
            for claim in self.claims(container):
                if claim.page is not None:
                    return claim.page, claim.page.port(container)
        return None

    @property
    def all_left(self) -> list[str]:
        return [program.leaves for program in self._programs if program.leaves]

    def leaves(self, pod: Object) -> list[str]:
        """Returns the files that exist on the node while the pod is Ready."""
        return [claim.leaves for c in pod["spec"]["containers"] for claim in self.claims(c) if claim.leaves]

    def knows(self, container: Object) -> bool:
        return bool(self.claims(container)) or self.runnable(container) is not None

    def runs_here(self, pod: Object) -> bool:
        """Returns whether a container of the pod needs a process. If not, KWOK runs the pod."""
        spec = pod["spec"]
        containers = [*spec.get("initContainers", []), *spec["containers"]]
        return any(isinstance(self.runnable(c), HostProcess | OneShot | Script) for c in containers)
