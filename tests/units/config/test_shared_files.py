"""What shared files are kept on, what follows of it, and what stacks on the platform are told."""

from __future__ import annotations

from typing import Any

import pytest

import workloads
from config.problems.errors import SettingsError
from config.rules.cost import hourly_cost
from tests.support.settings import H100, SECRET, load, platform

OWN: dict[str, Any] = {"vmSku": H100, "network": {"addressSpace": "10.0.0.0/16"}}
PRIVATE: dict[str, Any] = {
    "vmSku": H100,
    "network": {"addressSpace": "10.0.0.0/16", "private": True},
    "registry": {"sku": "Premium"},
}
BY_NFS = {"storage": {"sharedFiles": "nfs"}}


@pytest.mark.parametrize(
    ("stack", "kept_on", "entrances"),
    [
        ({"vmSku": H100}, "smb", ()),
        (OWN, "smb", ()),
        (OWN | BY_NFS, "nfs", ("file",)),
        (PRIVATE, "none", ("registry",)),
        (PRIVATE | BY_NFS, "nfs", ("registry", "file")),
    ],
)
def test_nothing_private_is_on_a_public_address(stack: dict[str, Any], kept_on: str, entrances: tuple[str]) -> None:
    settings = load(stack)
    assert settings.shared_files == kept_on
    assert settings.entrances() == entrances
    paid = hourly_cost(settings, {}).output()["resources"].get("private endpoint", 0)
    assert paid == pytest.approx(0.01 * len(entrances))


def test_protect_is_the_files_accounts_too() -> None:
    """Beside other accounts it would else be of one that is not there."""
    storage = {"sharedFiles": "nfs", "protect": False, "accounts": {"input": {"containers": {"data": {}}}}}
    assert load(OWN | {"storage": storage}).storage.protect is False


@pytest.mark.parametrize(("lender", "kept_on"), [({"vmSku": H100}, "smb"), (PRIVATE | BY_NFS, "nfs")])
def test_a_stack_on_the_platform_has_the_platforms(lender: dict[str, Any], kept_on: str) -> None:
    lodger = {"platformStack": "dev", "workloads": "notebook"}
    assert load(lodger, name="mine", others={"dev": platform(lender)}).shared_files == kept_on


def test_a_notebook_on_a_private_platform_without_them_is_refused_with_the_platforms_command() -> None:
    password = {"jupyterlab": {"password": "open-sesame"}}
    lodger = {"platformStack": "dev", "workloads": "jupyterlab", "workloadOptions": password}
    with pytest.raises(SettingsError) as refused:
        load(lodger, name="mine", others={"dev": platform(PRIVATE)}, known=workloads.find(), secret=SECRET)
    (problem,) = refused.value.problems
    assert str(problem).startswith("storage.sharedFiles of stack dev is none, and workload jupyterlab has shared files")
    assert "pulumi config set -s dev --path storage.sharedFiles nfs" in problem.text("mine")
