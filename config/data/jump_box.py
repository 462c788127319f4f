"""What is on a jump box, and what puts it there at its first boot. The data is in `jump_box.yaml`, with sources."""

from __future__ import annotations

import base64
import functools
from shlex import join, quote

import yaml
from pydantic import BaseModel, ConfigDict

from config.data import data

INSTALLER = "/usr/local/sbin/install-tools"
"""Where the machine has the script, which may run again."""
FUNCTIONS = data.FOLDER / "install_tools.sh"
"""What the script is made of, before its calls."""


class _Fact(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Tool(_Fact):
    """One release; in urls, `{version}`."""

    version: str
    url: str
    checksums: str
    members: str = ""

    def command(self, name: str) -> str:
        """A call of the installer's function for it."""
        urls = (each.format(version=self.version) for each in (self.url, self.checksums))
        return f"{join(['release', name, *urls])} {quote(self.members)}"


class AzureCli(_Fact):
    """Of a repository of Debian packages."""

    version: str
    repository: str
    distribution: str
    key: str
    fingerprint: str

    def command(self) -> str:
        """A call of the installer's function for it."""
        package = f"azure-cli={self.version}-1~{self.distribution}"
        return join(["package", package, self.repository, self.distribution, self.key, self.fingerprint])


class JumpBox(_Fact):
    """Its image, and all that is put on it."""

    image: dict[str, str]
    disk_gb: int
    packages: list[str]
    azure_cli: AzureCli
    tools: dict[str, Tool]


@functools.cache
def jump_box() -> JumpBox:
    """The facts, read once."""
    return JumpBox.model_validate(data.read("jump_box.yaml"))


def installer() -> str:
    """A script that puts all tools in their place, and none that is not what its release says it is."""
    found = jump_box()
    calls = [found.azure_cli.command(), *(tool.command(name) for name, tool in found.tools.items())]
    return "\n".join([FUNCTIONS.read_text(encoding="utf-8"), *calls, ""])


def custom_data() -> str:
    """What a machine is given for cloud-init, as Resource Manager takes it."""
    script = {"path": INSTALLER, "permissions": "0755", "content": installer()}
    config = {
        "package_update": True,
        "packages": jump_box().packages,
        "write_files": [script],
        "runcmd": [[INSTALLER]],
    }
    text = "#cloud-config\n" + yaml.safe_dump(config, sort_keys=True, width=1000)
    return base64.b64encode(text.encode()).decode()
