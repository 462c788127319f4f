"""Checks of the machine that runs an update, before any resource is declared."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from shutil import which

import pulumi

from config.problems.errors import lines
from config.problems.fixes import set_command

_INSTALL = {
    "kubelogin": "https://azure.github.io/kubelogin/install.html, or az aks install-cli",
    "az": "https://learn.microsoft.com/cli/azure/install-azure-cli",
}


def check_login(login: str | None, platform: str) -> None:
    """Raises pulumi.RunError if the Kubernetes provider could not log in to the cluster of the stack `platform`.

    A certificate (None) needs no program. All other methods need kubelogin. With `azurecli`, kubelogin calls Azure's
    CLI (Azure/kubelogin, pkg/internal/token/azureclicredential.go). Otherwise it reads the environment.
    """
    if login is None:
        return
    if missing := missing_programs(login):
        raise pulumi.RunError(refusal(missing, login, platform))


def missing_programs(login: str) -> list[str]:
    needed = ("kubelogin", "az") if login == "azurecli" else ("kubelogin",)
    return [name for name in needed if which(name) is None]


def check_all(checks: Iterable[Callable[[], None]]) -> None:
    """Runs all checks, and raises one pulumi.RunError with all errors, so that users can fix them together."""
    refused: list[str] = []
    for check in checks:
        try:
            check()
        except pulumi.RunError as error:
            refused.append(str(error))
    if refused:
        raise pulumi.RunError("\n\n".join(refused))


def refusal(missing: list[str], login: str, platform: str) -> str:
    certificate = set_command(("cluster", "localAccounts"), True).text(platform)
    return lines(
        f"PATH has no {' and no '.join(missing)}, which cluster.login {login} needs.",
        "Nothing was changed. Install the missing programs, and then `pulumi up` again:",
        *(f"    {name}: {_INSTALL[name]}" for name in missing),
        "Or use the cluster's admin certificate, if your security rules allow it:",
        f"    {certificate} && pulumi up -s {platform}",
    )
