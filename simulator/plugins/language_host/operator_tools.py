"""Builds the tools that the operators of a program need, before any resource is registered.

A build takes minutes. If a pod started it, the build would exceed timeouts of Helm and Deployments. The SDK registers
resources only after the program's own code has run.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pulumi
from pydantic.alias_generators import to_camel

from simulator.host import paths
from simulator.plugins.language_host.settings import ALREADY_REPORTED

_OPERATOR = re.compile(r"ai-on-aks:operators/\w+:\w+")


class DeclaredOperators:
    """The operators that a program declares. Create this while the program's stack is the current stack."""

    def __init__(self) -> None:
        self._keys: set[str] = set()
        pulumi.runtime.register_stack_transformation(self._note)

    def _note(self, declared: pulumi.ResourceTransformationArgs) -> None:
        if _OPERATOR.fullmatch(declared.type_):
            self._keys.add(to_camel(declared.name.replace("-", "_")))

    def make_tools(self, *, dry_run: bool) -> None:
        """Builds missing tools and prints the progress. A preview only announces the build.

        If a build fails, ends the process: after an exception, the engine would still create the declared resources.
        """
        missing = self.missing()
        if not missing:
            return
        when = "The update builds them before anything else." if dry_run else "They are built now."
        print(f"The operators need tools that are not built yet: {', '.join(missing)}. {when}", flush=True)
        if dry_run:
            return
        command = [sys.executable, "-m", "simulator.tools", "--only", ",".join(missing)]
        if subprocess.run(command, cwd=paths.ROOT, stderr=sys.stdout, check=False).returncode:
            os._exit(ALREADY_REPORTED)

    def missing(self) -> list[str]:
        from simulator.tools.catalogue import load  # needed only after the program has run

        needed = [tool.name for tool in load().tools if tool.needed_for & self._keys]
        return [name for name in needed if not (paths.tools_bin() / name).exists()]
