"""The software of a jump box and its installation at first boot. `jump_box.yaml` has data and sources."""

from __future__ import annotations

import base64
import functools
from shlex import join, quote

import yaml
from pydantic import BaseModel, ConfigDict

from config.data import data

INSTALLER = "/usr/local/sbin/install-tools"
FUNCTIONS = data.FOLDER / "install_tools.sh"


class _Fact(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Tool(_Fact):
    """A release of a tool; its URLs contain `{version}`."""

    version: str
    url: str
    checksums: str
    members: str = ""

    def command(self, name: str) -> str:
        urls = (each.format(version=self.version) for each in (self.url, self.checksums))
        return f"{join(['release', name, *urls])} {quote(self.members)}"


class AzureCli(_Fact):
    """The Azure CLI from a repository of Debian packages."""

    version: str
    repository: str
    distribution: str
    key: str
    fingerprint: str

    def command(self) -> str:
        package = f"azure-cli={self.version}-1~{self.distribution}"
        return join(["package", package, self.repository, self.distribution, self.key, self.fingerprint])


class JumpBox(_Fact):
    """The image of the jump box, and its software."""

    image: dict[str, str]
    disk_gb: int
    packages: list[str]
    azure_cli: AzureCli
    tools: dict[str, Tool]


@functools.cache
def jump_box() -> JumpBox:
    return JumpBox.model_validate(data.read("jump_box.yaml"))


def installer() -> str:
    """Returns a script that installs all tools, and verifies their checksums or signatures."""
    found = jump_box()
    calls = [found.azure_cli.command(), *(tool.command(name) for name, tool in found.tools.items())]
    return "\n".join([FUNCTIONS.read_text(encoding="utf-8"), *calls, ""])


def custom_data() -> str:
    """Returns the jump box's cloud-init configuration in base64, as Resource Manager requires."""
    script = {"path": INSTALLER, "permissions": "0755", "content": installer()}
    config = {
        "package_update": True,
        "packages": jump_box().packages,
        "write_files": [script],
        "runcmd": [[INSTALLER]],
    }
    text = "#cloud-config\n" + yaml.safe_dump(config, sort_keys=True, width=1000)
    return base64.b64encode(text.encode()).decode()
