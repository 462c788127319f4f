"""A Pulumi stack on the active kubernetes plugin.

CONFORMANCE_PULUMI_HOME names a PULUMI_HOME with the official plugin; the default is this checkout's emulated plugin.
Tests use only the CLI, Python programs and the API server.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from simulator.command import emulated_plugins
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
    """Returns None if HOME is not set. Raises FileNotFoundError if the plugin is missing."""
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
    return official() or PLUGINS / PLUGIN


class ConformanceStack(PluginStack):
    """A stack whose program (`__main__.py` after PREAMBLE) has `program`'s arguments in the dict `values`."""

    def __init__(self, folder: Path, kubeconfig: str) -> None:
        super().__init__(folder, kubeconfig)
        self.environment["PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION"] = "true"
        plugin = official()
        if plugin:
            self._install(plugin)

    def _install(self, plugin: Path) -> None:
        """Installs a plugin in the stack's PULUMI_HOME, and removes the emulated one from PATH."""
        installed = self.folder / "home" / "plugins" / plugin.parent.name
        others = self.folder / "bin"
        for folder in (installed, others):
            folder.mkdir(parents=True)
        for file in plugin.parent.iterdir():
            (installed / file.name).symlink_to(file.resolve())
        for name in {other.name for other in emulated_plugins.ALL} - {PLUGIN}:
            (others / name).symlink_to(PLUGINS / name)
        self.environment["PATH"] = self.environment["PATH"].replace(str(PLUGINS), str(others), 1)

    def program(self, text: str, **values: Any) -> None:
        (self.folder / "values.json").write_text(json.dumps(values))
        (self.folder / "__main__.py").write_text(PREAMBLE + READ_VALUES + text)

    def helm(self, *arguments: str) -> Result:
        """Runs Helm on the stack's cluster."""
        file = self.folder / "kubeconfig"
        file.touch(mode=0o600)
        file.write_text(self.environment["KUBECONFIG_TEXT"])
        command = [str(paths.tool("helm")), *arguments, "--kubeconfig", str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return Result(done.returncode, done.stdout + done.stderr)

    def preview(self, *arguments: str) -> Preview:
        return Preview(self.pulumi("preview", "--json", "--show-sames", "--show-replacement-steps", *arguments))

    def resources(self) -> list[Json]:
        """Secrets are masked."""
        exported: Json = json.loads(self.pulumi("stack", "export").output)
        resources: list[Json] = exported["deployment"].get("resources", [])
        return resources


class Preview:
    def __init__(self, result: Result) -> None:
        self.code = result.code
        self.output = result.output
        _, opening, rest = result.output.partition("{\n")
        assert opening, result.output
        found: Json = json.JSONDecoder().raw_decode(opening + rest)[0]
        self.steps: list[Json] = [step for step in found.get("steps", []) if step["op"] != "refresh"]
        self.diagnostics = "".join(item["message"] for item in found.get("diagnostics", []))

    def operations(self, name: str) -> list[str]:
        return [step["op"] for step in self._of(name)]

    def operation(self, name: str) -> str:
        """Returns `same`, `create`, `update`, `delete`, or `replace` for a replacement's three steps."""
        found = set(self.operations(name))
        return "replace" if "replace" in found else " and ".join(sorted(found)) or "none"

    def reasons(self, name: str) -> list[str]:
        return sorted({reason for step in self._of(name) for reason in step.get("replaceReasons") or []})

    def changes(self, name: str) -> list[str]:
        return sorted({path for step in self._of(name) for path in step.get("detailedDiff") or {}})

    def inputs(self, name: str) -> Json:
        """A preview has no outputs."""
        states: list[Json] = [step["newState"] for step in self._of(name) if "newState" in step]
        found: Json = states[-1].get("inputs", {})
        return found

    def _of(self, name: str) -> list[Json]:
        return [step for step in self.steps if step["urn"].endswith(f"::{name}")]
