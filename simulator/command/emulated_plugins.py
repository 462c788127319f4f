"""Installs the emulated plugins in the plugin folder of PULUMI_HOME, with the requested version.

If they were on PATH, every command would warn about them. If a version exists twice, the CLI starts the plugin with
build metadata, which is the emulated one (pulumi/pulumi v3.246.0, sdk/go/common/workspace/plugins.go,
SelectCompatiblePlugin). So the launchers in `simulator/plugins/bin` start the official plugin if it is installed.
"""

from __future__ import annotations

import contextlib
import os
import site
import sys
import tempfile
import venv
from dataclasses import dataclass
from pathlib import Path

from simulator.host import files, paths
from simulator.plugins import azure_native, kubernetes

_MARK = "+simulator"
"""The build metadata of emulated plugins, which version comparisons ignore.

`pulumi plugin install` also ignores the metadata, unless `--exact` or PULUMI_OPTION_EXACT requires the folder of the
exact version (same file, HasPlugin and HasPluginGTE).
"""
_OWN = paths.ROOT / "simulator" / "plugins" / "bin"


@dataclass(frozen=True)
class EmulatedPlugin:
    """A plugin, named after its executable."""

    name: str
    version: str
    """The version that the program requests. Plugins of the CLI have 3.0.0."""
    with_the_cli: bool = False
    """Whether releases of the CLI include the official plugin."""

    @property
    def _folder(self) -> Path:
        """The folder to which `pulumi plugin install` installs the official plugin."""
        return _plugins() / f"{self.name.removeprefix('pulumi-')}-v{self.version}"

    def serving(self) -> Path:
        official = (paths.tools_bin() if self.with_the_cli else self._folder) / self.name
        partial = self._folder.with_name(f"{self._folder.name}.partial")  # exists while the official plugin is unpacked
        return official if os.access(official, os.X_OK) and not partial.exists() else _OWN / self.name

    def install(self) -> None:
        file = self._folder.with_name(f"{self._folder.name}{_MARK}") / self.name
        file.parent.mkdir(parents=True, exist_ok=True)
        files.link(file, _OWN / self.name)


LANGUAGE_HOST = EmulatedPlugin("pulumi-language-python", "3.0.0", with_the_cli=True)
ALL = (
    LANGUAGE_HOST,
    EmulatedPlugin("pulumi-resource-pulumi-python", "3.0.0", with_the_cli=True),
    EmulatedPlugin("pulumi-resource-kubernetes", kubernetes.VERSION),
    EmulatedPlugin("pulumi-resource-azure-native", azure_native.VERSION),
)


def install() -> None:
    """Installs all plugins. Deletes schemas that the CLI cached, because they may have changed."""
    for plugin in ALL:
        plugin.install()
    if not LANGUAGE_HOST.serving().is_relative_to(_OWN):
        ensure_environment(paths.ROOT / ".venv")
    for kept in _plugins().with_name("schemas").glob(f"*{_MARK}.json"):
        kept.unlink(missing_ok=True)


def _plugins() -> Path:
    return paths.home().resolve() / "pulumi" / "plugins"


def ensure_environment(folder: Path) -> None:
    """Creates the virtual environment of Pulumi.yaml, with the packages of this environment, unless it exists.

    Without it, the official language host would install a gigabyte from the package index in each checkout
    (pulumi/pulumi, sdk/python/toolchain/pip.go, EnsureVenv).
    """
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    link = folder / "lib" / version / "site-packages" / "simulator.pth"
    if not folder.exists():
        with tempfile.TemporaryDirectory(prefix=".venv.", dir=folder.parent) as made:
            venv.create(Path(made, "venv"), symlinks=True)
            Path(made, "venv", link.relative_to(folder)).touch()
            with contextlib.suppress(OSError):  # another process created it
                Path(made, "venv").rename(folder)
    if link.exists():
        files.replace(link, "\n".join(site.getsitepackages()) + "\n")
