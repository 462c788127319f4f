"""The variables that make plain `pulumi`, `kubectl` and `helm` use only the simulator."""

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
from simulator.command import emulated_plugins
from simulator.host import files, paths, ports

PASSPHRASE = "simulator"  # noqa: S105 - public on purpose: it protects only a simulated cluster on this machine
"""The passphrase of the committed stack files, the same in every checkout."""

LOGINS = paths.ROOT / "simulator" / "plugins" / "logins" / "bin"
"""The folder with a small `az` and the real `kubelogin`, which has a separate cache."""
INSIDE = "SIMULATOR_INSIDE"
"""The variable with the label of the virtual network in which commands run. It is empty outside of all networks."""
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
    """Returns the file with simulated Azure's token. Creates a missing file once, even for several processes."""
    file = paths.home() / "arm-token"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = file.with_name(f"arm-token.{os.getpid()}")
        fresh.touch(mode=0o600)
        fresh.write_text(secrets.token_hex(32))  # hexadecimal: never starts with a hyphen, so it can follow an option
        with contextlib.suppress(FileExistsError):
            file.hardlink_to(fresh)
        fresh.unlink()
    return file


def kubeconfig_file() -> Path:
    return paths.home() / "kubeconfig"


def settings() -> dict[str, str]:
    """Returns the variables, and creates the folders and files that they name. Raises ports.PortTaken."""
    endpoint = f"https://127.0.0.1:{ports.port('arm')}"
    home = paths.home().resolve()
    for folder in ("state", "pulumi"):
        (home / folder).mkdir(parents=True, exist_ok=True, mode=0o700)
    passphrase = home / "passphrase"
    files.replace(passphrase, PASSPHRASE)
    emulated_plugins.install()
    return {
        "SIMULATOR_HOME": str(home),
        "SIMULATOR_ARM_ENDPOINT": endpoint,
        "SIMULATOR_ARM_TOKEN_FILE": str(token_file()),
        "SIMULATOR_PYTHON": sys.executable,
        "SIMULATOR_TOOLS": str(paths.tools_bin()),
        "KUBECONFIG": str(kubeconfig_file()),
        "KUBECACHEDIR": str(paths.kube_cache()),
        "PULUMI_HOME": str(home / "pulumi"),
        # Skips metadata files, because the backend does not write them atomically. If pulumi is killed during a
        # write, no command can read the stack any more ("error: EOF").
        "PULUMI_BACKEND_URL": f"file://{home / 'state'}?metadata=skip",
        "PULUMI_CONFIG_PASSPHRASE_FILE": str(passphrase),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "PULUMI_IGNORE_AMBIENT_PLUGINS": "true",  # otherwise plugins on PATH are used
        "PULUMI_AUTOMATION_API_SKIP_VERSION_CHECK": "true",
        "PULUMI_OPTION_EXACT": "true",  # else emulated plugins block `pulumi plugin install` of official ones
        "AZURE_CONFIG_DIR": str(home / "azure-cli"),  # hides the login of the user's real Azure CLI
        **_cloud(endpoint),
        "PYTHONPYCACHEPREFIX": str(paths.bytecode()),
        "PYTHONDONTWRITEBYTECODE": "",  # empty means off
        "PATH": _path(),
    }


def of_stack(stack: str, context: str) -> dict[str, str]:
    """Returns the variables that select a stack and a kubectl context in one shell.

    kubectl merges the files of KUBECONFIG; the first current context wins.
    """
    own = paths.home().resolve() / "kubeconfigs" / stack
    own.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    files.replace(own, yaml.safe_dump({"apiVersion": "v1", "kind": "Config", "current-context": context}))
    return {"PULUMI_STACK": stack, "KUBECONFIG": f"{own}{os.pathsep}{kubeconfig_file()}"}


def _cloud(endpoint: str) -> dict[str, str]:
    """Returns the variables by which the program, Azure's SDK and azure-native find, trust and log in to this cloud.

    azure-native uses the first of these logins that is set: client certificate, client secret, OIDC, managed identity.
    Settings of a stack override these variables (pulumi-azure-native, provider/pkg/provider/auth_azidentity.go).
    """
    trusted, inside = str(trust.bundle()), os.environ.get(INSIDE, "")
    return {
        "ARM_METADATA_HOSTNAME": endpoint,
        "ARM_SUBSCRIPTION_ID": subscription.load().subscription_id,
        "ARM_USE_MSI": "true",
        "ARM_DISABLE_INSTANCE_DISCOVERY": "true",  # else MSAL asks Microsoft whether it knows this cloud
        "IDENTITY_ENDPOINT": f"{endpoint}{domains.machine(inside) if inside else ''}{domains.IDENTITY}",
        "IDENTITY_HEADER": token_file().read_text().strip(),
        # Azure's SDKs use this address as the metadata service of their machine.
        "AZURE_POD_IDENTITY_AUTHORITY_HOST": f"{endpoint}{domains.machine(inside)}",
        "CURL_CA_BUNDLE": trusted,
        "REQUESTS_CA_BUNDLE": trusted,
        "SSL_CERT_FILE": trusted,
        **_proxies(),
    }


def outer_proxy() -> str:
    """Returns the user's own HTTPS proxy, or an empty text."""
    if OUTER in os.environ:
        return os.environ[OUTER]
    return "" if "*" in _direct() else os.environ.get("https_proxy") or os.environ.get("HTTPS_PROXY", "")


def _direct() -> list[str]:
    """Returns the hosts that the user reaches without a proxy."""
    asked = os.environ.get("no_proxy") or os.environ.get("NO_PROXY", "")
    return [name.strip() for name in asked.split(",") if name.strip()]


def _proxies() -> dict[str, str]:
    """Returns variables that send HTTPS and HTTP through the simulator's proxy, except requests to this machine.

    The proxy resolves names of Azure only in simulated Azure, from the network in `SIMULATOR_INSIDE`. This machine must
    not resolve them, because they may exist in Azure. Other names use the user's proxy, if any.
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
    """Returns whether an entry of NO_PROXY, such as `*` or `.windows.net`, makes Azure's names bypass the proxy."""
    return any(
        f".{domain}".endswith(f".{name.lstrip('*.')}".rstrip(".")) for domain in (*domains.ALL, *domains.MICROSOFT)
    )


def unset() -> list[str]:
    there = {name for name in os.environ if name.startswith(_CREDENTIALS)}
    return sorted((set(_ALWAYS_UNSET) | there) - {"AZURE_CONFIG_DIR", "IDENTITY_ENDPOINT", "IDENTITY_HEADER"})


def environment() -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if key not in unset()}
    return {**kept, **settings()}


def shell_lines(chosen: Mapping[str, str]) -> str:
    lines = [f"unset {' '.join(unset())}"]
    lines += [f"export {key}={shlex.quote(value)}" for key, value in {**settings(), **chosen}.items()]
    return "\n".join(lines)


def _path() -> str:
    first = [str(LOGINS), str(paths.tools_bin()), str(Path(sys.executable).parent)]
    rest = [part for part in os.environ.get("PATH", "").split(os.pathsep) if part and part not in first]
    return os.pathsep.join([*first, *rest])
