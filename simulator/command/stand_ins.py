"""The stand-ins for Pulumi's plugins: which are needed, and where the CLI finds them.

They lie in PULUMI_HOME's folder of plugins, in the version that the program asks for. On PATH they would be found too,
but the CLI would warn of each of them in every command. Where a version is there twice, the CLI starts the one with
build metadata (pulumi/pulumi v3.246.0, sdk/go/common/workspace/plugins.go, SelectCompatiblePlugin). So the emulated
plugins' launchers (`simulator/plugins/bin`) start the official plugin as soon as it is installed.
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
"""Build metadata, which comparing versions leaves out.

`pulumi plugin install` leaves it out too, unless `--exact` or PULUMI_OPTION_EXACT is set: then it looks for the folder
of that very version (same file, HasPlugin and HasPluginGTE).
"""
_OWN = paths.ROOT / "simulator" / "plugins" / "bin"


@dataclass(frozen=True)
class StandIn:
    """One plugin, by the name of its executable."""

    name: str
    version: str
    """That the program asks for; of what comes with the CLI it asks for none."""
    with_the_cli: bool = False
    """A released CLI has the official one beside itself."""

    @property
    def _folder(self) -> Path:
        """Where `pulumi plugin install` puts the official one."""
        return _plugins() / f"{self.name.removeprefix('pulumi-')}-v{self.version}"

    def serving(self) -> Path:
        """The file that serves the plugin: the official one if it is installed, else the emulated one."""
        official = (paths.tools_bin() if self.with_the_cli else self._folder) / self.name
        partial = self._folder.with_name(f"{self._folder.name}.partial")  # exists until the official one is unpacked
        return official if os.access(official, os.X_OK) and not partial.exists() else _OWN / self.name

    def install(self) -> None:
        """Puts the emulated one where the CLI looks."""
        file = self._folder.with_name(f"{self._folder.name}{_MARK}") / self.name
        file.parent.mkdir(parents=True, exist_ok=True)
        files.link(file, _OWN / self.name)


LANGUAGE_HOST = StandIn("pulumi-language-python", "3.0.0", with_the_cli=True)
ALL = (
    LANGUAGE_HOST,
    StandIn("pulumi-resource-pulumi-python", "3.0.0", with_the_cli=True),
    StandIn("pulumi-resource-kubernetes", kubernetes.VERSION),
    StandIn("pulumi-resource-azure-native", azure_native.VERSION),
)


def install() -> None:
    """All that are needed. The CLI keeps their schemas by version, and these versions stay: it has to ask anew."""
    for stand_in in ALL:
        stand_in.install()
    if not LANGUAGE_HOST.serving().is_relative_to(_OWN):
        lend_environment(paths.ROOT / ".venv")
    for kept in _plugins().with_name("schemas").glob(f"*{_MARK}.json"):
        kept.unlink(missing_ok=True)


def _plugins() -> Path:
    return paths.home().resolve() / "pulumi" / "plugins"


def lend_environment(folder: Path) -> None:
    """Makes the environment that Pulumi.yaml names, with the packages of this one; one of the user's own stays.

    The official language host runs programs in it, and makes it from the package index where it is missing: a gigabyte
    in each checkout (pulumi/pulumi, sdk/python/toolchain/pip.go, EnsureVenv). What `pulumi install` puts there later
    comes first.
    """
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    lent = folder / "lib" / version / "site-packages" / "simulator.pth"
    if not folder.exists():
        with tempfile.TemporaryDirectory(prefix=".venv.", dir=folder.parent) as made:
            venv.create(Path(made, "venv"), symlinks=True)
            Path(made, "venv", lent.relative_to(folder)).touch()
            with contextlib.suppress(OSError):  # another process has made it meanwhile
                Path(made, "venv").rename(folder)
    if lent.exists():
        files.replace(lent, "\n".join(site.getsitepackages()) + "\n")
