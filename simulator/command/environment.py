"""The environment in which plain `pulumi`, `kubectl` and `helm` act on the simulator, and on nothing else."""

from __future__ import annotations

import contextlib
import os
import secrets
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

import yaml

from simulator.azure import domains, subscription, trust
from simulator.command import stand_ins
from simulator.host import files, paths, ports

PASSPHRASE = "simulator"  # noqa: S105 - known to all on purpose: it guards a simulated cluster on this machine only
"""The passphrase of the committed stack files, so that `Pulumi.dev.yaml` is the same in every checkout."""

LOGINS = paths.ROOT / "simulator" / "plugins" / "logins" / "bin"
"""The real `kubelogin`, with a cache of its own, and a small `az`."""
INSIDE = "SIMULATOR_INSIDE"
"""The virtual network to be in, by its label; empty outside of all."""
OUTER = "SIMULATOR_OUTER_PROXY"
_HERE = ("127.0.0.1", "localhost")
_CREDENTIALS = ("AAD_", "ARM_", "AZURE_", "AWS_", "GOOGLE_", "IDENTITY_", "MSI_")
_ALWAYS_UNSET = (
    "ARM_CLIENT_ID",
    "ARM_CLIENT_SECRET",
    "ARM_TENANT_ID",
    "ARM_SUBSCRIPTION_ID",
    "ARM_USE_OIDC",
    "ARM_USE_MSI",
    "ARM_OIDC_TOKEN",
    "AZURE_CLIENT_ID",
    "AZURE_CLIENT_SECRET",
    "AZURE_TENANT_ID",
    "AZURE_SUBSCRIPTION_ID",
    "PULUMI_ACCESS_TOKEN",
    "PULUMI_CONFIG_PASSPHRASE",
    "PULUMI_CREDENTIALS_PATH",
    "PULUMI_ORG",
    "PULUMI_STACK",
)


def token_file() -> Path:
    """The token of simulated Azure, made once; the first of several processes makes it."""
    file = paths.home() / "arm-token"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = file.with_name(f"arm-token.{os.getpid()}")
        fresh.touch(mode=0o600)
        fresh.write_text(secrets.token_hex(32))  # as an option too it is one word: no hyphen in front
        with contextlib.suppress(FileExistsError):
            file.hardlink_to(fresh)
        fresh.unlink()
    return file


def kubeconfig_file() -> Path:
    return paths.home() / "kubeconfig"


def settings() -> dict[str, str]:
    """Variables to set. Makes the folders and files that they name. Raises ports.PortTaken for a port that is none."""
    endpoint = f"https://127.0.0.1:{ports.port('arm')}"
    home = paths.home().resolve()
    for folder in ("state", "pulumi"):
        (home / folder).mkdir(parents=True, exist_ok=True, mode=0o700)
    passphrase = home / "passphrase"
    files.replace(passphrase, PASSPHRASE)
    stand_ins.install()
    return {
        "SIMULATOR_HOME": str(home),
        "SIMULATOR_ARM_ENDPOINT": endpoint,
        "SIMULATOR_ARM_TOKEN_FILE": str(token_file()),
        "SIMULATOR_PYTHON": sys.executable,
        "SIMULATOR_TOOLS": str(paths.tools_bin()),
        "KUBECONFIG": str(kubeconfig_file()),
        "KUBECACHEDIR": str(paths.kube_cache()),
        "PULUMI_HOME": str(home / "pulumi"),
        # Without the backend's own metadata beside each file: it is not written in one step, and a pulumi killed
        # in the middle leaves a stack that no command reads any more ("error: EOF").
        "PULUMI_BACKEND_URL": f"file://{home / 'state'}?metadata=skip",
        "PULUMI_CONFIG_PASSPHRASE_FILE": str(passphrase),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "PULUMI_IGNORE_AMBIENT_PLUGINS": "true",  # else plugins that the user has on PATH would serve
        "PULUMI_AUTOMATION_API_SKIP_VERSION_CHECK": "true",
        "PULUMI_OPTION_EXACT": "true",  # else stand-ins keep `pulumi plugin install` from installing what is official
        "AZURE_CONFIG_DIR": str(home / "azure-cli"),  # hides a login of the Azure CLI
        **_cloud(endpoint),
        "PYTHONPYCACHEPREFIX": str(paths.bytecode()),
        "PYTHONDONTWRITEBYTECODE": "",  # empty is off
        "PATH": _path(),
    }


def of_stack(stack: str, context: str) -> dict[str, str]:
    """Returns variables that select a stack, and a context of kubectl, in one shell and in no other.

    kubectl merges the files of KUBECONFIG, and the first one that names a current context wins.
    """
    own = paths.home().resolve() / "kubeconfigs" / stack
    own.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    files.replace(own, yaml.safe_dump({"apiVersion": "v1", "kind": "Config", "current-context": context}))
    return {"PULUMI_STACK": stack, "KUBECONFIG": f"{own}{os.pathsep}{kubeconfig_file()}"}


def _cloud(endpoint: str) -> dict[str, str]:
    """By which the program, its Azure SDK and the official azure-native plugin find this cloud, trust it and sign in.

    The plugin takes the first of a client certificate, a client secret, OIDC and a managed identity that is set: its
    own keys of a stack come before these variables (pulumi-azure-native, provider/pkg/provider/auth_azidentity.go).
    """
    trusted, inside = str(trust.bundle()), os.environ.get(INSIDE, "")
    return {
        "ARM_METADATA_HOSTNAME": endpoint,
        "ARM_SUBSCRIPTION_ID": subscription.load().subscription_id,
        "ARM_USE_MSI": "true",
        "ARM_DISABLE_INSTANCE_DISCOVERY": "true",  # else MSAL asks Microsoft whether it knows this cloud
        "IDENTITY_ENDPOINT": f"{endpoint}{domains.machine(inside) if inside else ''}{domains.IDENTITY}",
        "IDENTITY_HEADER": token_file().read_text().strip(),
        # Where Azure's SDKs look for the metadata service of the machine that they are on.
        "AZURE_POD_IDENTITY_AUTHORITY_HOST": f"{endpoint}{domains.machine(inside)}",
        "CURL_CA_BUNDLE": trusted,
        "REQUESTS_CA_BUNDLE": trusted,
        "SSL_CERT_FILE": trusted,
        **_proxies(),
    }


def outer_proxy() -> str:
    """The user's own proxy for HTTPS: of the environment, or as it was when this one was entered."""
    if OUTER in os.environ:
        return os.environ[OUTER]
    return "" if "*" in _direct() else os.environ.get("https_proxy") or os.environ.get("HTTPS_PROXY", "")


def _direct() -> list[str]:
    """What the user's proxies are not for."""
    asked = os.environ.get("no_proxy") or os.environ.get("NO_PROXY", "")
    return [name.strip() for name in asked.split(",") if name.strip()]


def _proxies() -> dict[str, str]:
    """HTTPS and HTTP go by the simulator's proxy, but for what is on this machine.

    So a name of Azure is looked up in simulated Azure alone, inside the network that `SIMULATOR_INSIDE` names, and
    never by this machine, where it may be somebody's. The rest goes on by the user's own proxy, if there is one.
    """
    inside = os.environ.get(INSIDE, "")
    proxy = domains.proxy(ports.port("proxy"), inside)
    chosen = {
        "HTTPS_PROXY": proxy,
        "HTTP_PROXY": proxy,
        "NO_PROXY": ",".join([*(name for name in _direct() if name not in _HERE and not _is_azure(name)), *_HERE]),
    }
    return {INSIDE: inside, OUTER: outer_proxy(), **chosen, **{name.lower(): value for name, value in chosen.items()}}


def _is_azure(name: str) -> bool:
    """Whether an entry of NO_PROXY would let names of Azure out: `*`, `.windows.net`."""
    return any(
        f".{domain}".endswith(f".{name.lstrip('*.')}".rstrip(".")) for domain in (*domains.ALL, *domains.MICROSOFT)
    )


def unset() -> list[str]:
    """Credentials that must not be seen inside: the well-known ones, and whatever of theirs is set."""
    there = {name for name in os.environ if name.startswith(_CREDENTIALS)}
    return sorted((set(_ALWAYS_UNSET) | there) - {"AZURE_CONFIG_DIR", "IDENTITY_ENDPOINT", "IDENTITY_HEADER"})


def environment() -> dict[str, str]:
    """The whole environment for a child process."""
    kept = {key: value for key, value in os.environ.items() if key not in unset()}
    return {**kept, **settings()}


def shell_lines(chosen: Mapping[str, str]) -> str:
    """Lines that enter the environment, with the variables of a chosen stack."""
    lines = [f"unset {' '.join(unset())}"]
    lines += [f"export {key}={shlex.quote(value)}" for key, value in {**settings(), **chosen}.items()]
    return "\n".join(lines)


def _path() -> str:
    """PATH with the logins, the tools and this Python in front of what was there."""
    first = [str(LOGINS), str(paths.tools_bin()), str(Path(sys.executable).parent)]
    rest = [part for part in os.environ.get("PATH", "").split(os.pathsep) if part and part not in first]
    return os.pathsep.join([*first, *rest])
