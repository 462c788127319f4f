"""A Pulumi stack on whichever kubernetes plugin is active: the official one where it is installed, else the stand-in.

CONFORMANCE_PULUMI_HOME names a PULUMI_HOME that has the official plugin; without it, the stand-in of this checkout
serves. The tests see neither: they use the CLI, programs in Python and the API server.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from simulator.command import stand_ins
from simulator.host import paths
from simulator.plugins.kubernetes import VERSION
from tests.support.plugin_stack import PLUGINS, PREAMBLE, PluginStack, Result

READ_VALUES = """
import json, pathlib
values = json.loads(pathlib.Path("values.json").read_text())
"""
HOME = "CONFORMANCE_PULUMI_HOME"
PLUGIN = "pulumi-resource-kubernetes"
Json = dict[str, Any]


def official() -> Path | None:
    """The official plugin that HOME names; None where it is not set. Raises FileNotFoundError if it is not there."""
    home = os.environ.get(HOME)
    if not home:
        return None
    folder = Path(home) / "plugins" / f"resource-kubernetes-v{VERSION}"
    if not (folder / PLUGIN).is_file():
        raise FileNotFoundError(
            f"{HOME}={home} has no {folder.name}/{PLUGIN} in plugins/; install it there: "
            f"PULUMI_HOME={home} pulumi plugin install resource kubernetes {VERSION}"
        )
    return folder / PLUGIN


def serving() -> Path:
    """The file that serves the plugin."""
    return official() or PLUGINS / PLUGIN


class ConformanceStack(PluginStack):
    """`program` is the text of __main__.py after PREAMBLE, which finds what `values` has in the dict of that name."""

    def __init__(self, folder: Path, kubeconfig: str) -> None:
        super().__init__(folder, kubeconfig)
        self.environment["PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION"] = "true"
        plugin = official()
        if plugin:
            self._install(plugin)

    def _install(self, plugin: Path) -> None:
        """Into the stack's own PULUMI_HOME, and off PATH, where the engine would take the stand-in before it."""
        installed = self.folder / "home" / "plugins" / plugin.parent.name
        others = self.folder / "bin"
        for folder in (installed, others):
            folder.mkdir(parents=True)
        for file in plugin.parent.iterdir():
            (installed / file.name).symlink_to(file.resolve())
        for name in {other.name for other in stand_ins.ALL} - {PLUGIN}:
            (others / name).symlink_to(PLUGINS / name)
        self.environment["PATH"] = self.environment["PATH"].replace(str(PLUGINS), str(others), 1)

    def program(self, text: str, **values: Any) -> None:
        (self.folder / "values.json").write_text(json.dumps(values))
        (self.folder / "__main__.py").write_text(PREAMBLE + READ_VALUES + text)

    def helm(self, *arguments: str) -> Result:
        """Helm on the stack's cluster, behind Pulumi's back."""
        file = self.folder / "kubeconfig"
        file.touch(mode=0o600)
        file.write_text(self.environment["KUBECONFIG_TEXT"])
        command = [str(paths.tool("helm")), *arguments, "--kubeconfig", str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return Result(done.returncode, done.stdout + done.stderr)

    def preview(self, *arguments: str) -> Preview:
        return Preview(self.pulumi("preview", "--json", "--show-sames", "--show-replacement-steps", *arguments))

    def resources(self) -> list[Json]:
        """What the state holds; of secrets, their mark."""
        exported: Json = json.loads(self.pulumi("stack", "export").output)
        resources: list[Json] = exported["deployment"].get("resources", [])
        return resources


class Preview:
    """What `pulumi preview --json` says."""

    def __init__(self, result: Result) -> None:
        self.code = result.code
        self.output = result.output
        _, opening, rest = result.output.partition("{\n")
        assert opening, result.output
        said: Json = json.JSONDecoder().raw_decode(opening + rest)[0]
        self.steps: list[Json] = [step for step in said.get("steps", []) if step["op"] != "refresh"]
        self.diagnostics = "".join(item["message"] for item in said.get("diagnostics", []))

    def operations(self, name: str) -> list[str]:
        """The steps of the resource with that logical name, in order."""
        return [step["op"] for step in self._of(name)]

    def operation(self, name: str) -> str:
        """`same`, `create`, `update`, `delete`, or `replace` for the three steps of a replacement."""
        found = set(self.operations(name))
        return "replace" if "replace" in found else " and ".join(sorted(found)) or "none"

    def reasons(self, name: str) -> list[str]:
        """The paths that replace the resource."""
        return sorted({reason for step in self._of(name) for reason in step.get("replaceReasons") or []})

    def changes(self, name: str) -> list[str]:
        """The paths that differ."""
        return sorted({path for step in self._of(name) for path in step.get("detailedDiff") or {}})

    def inputs(self, name: str) -> Json:
        """The inputs that the step starts with; its outputs come later, and are not in a preview."""
        states: list[Json] = [step["newState"] for step in self._of(name) if "newState" in step]
        found: Json = states[-1].get("inputs", {})
        return found

    def _of(self, name: str) -> list[Json]:
        return [step for step in self.steps if step["urn"].endswith(f"::{name}")]
