from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml

from tests.support.arm import SUBSCRIPTION, TOKEN

AKS = "--resource-group rg --name aks"
_HERE = f"/subscriptions/{SUBSCRIPTION.subscription_id}"
_GROUP = f"{_HERE}/resourceGroups/rg"
_POOL = "--resource-group rg --cluster-name aks"
_CLUSTER = f"{_GROUP}/providers/Microsoft.ContainerService/managedClusters/aks"
_AUTOMATION, _GRACE = SUBSCRIPTION.directory["automation"], SUBSCRIPTION.directory["grace"]
_NAMES = {
    "here": _HERE,
    "group": _GROUP,
    "pool": _POOL,
    "aks": AKS,
    "cluster": _CLUSTER,
    "feature": "--name AKSInfinibandSupport --namespace Microsoft.ContainerService",
    "resim_pool": f"aks nodepool add {_POOL} --node-taints sku=gpu:NoSchedule --enable-cluster-autoscaler "
    "--min-count 1 --max-count 5 --node-count 1 --tags SkipGPUDriverInstall=True --priority Spot",
    "automation": _AUTOMATION.client_id,
    "automation_object": _AUTOMATION.object_id,
    "grace": _GRACE.upn,
    "grace_object": _GRACE.object_id,
    "grace_group": _GRACE.groups[0],
    "tenant": SUBSCRIPTION.tenant_id,
    "token": TOKEN,
}
_TABLES = yaml.safe_load(Path(__file__).with_name("azure_cli_lines.yaml").read_text("utf-8"))


def lines(table: str) -> list[tuple[str, str]]:
    return [(each["az"].format(**_NAMES), each.get("prints", "").format(**_NAMES)) for each in _TABLES[table]]


def login() -> str:
    return f"login --service-principal -u {_AUTOMATION.client_id} -p {TOKEN} --tenant {SUBSCRIPTION.tenant_id}"


def role_of_machine(principal: str) -> tuple[str, str]:
    """Returns av-resim-on-aks's command that gives the jump box access to the cluster, and its output."""
    role = "Azure Kubernetes Service RBAC Cluster Admin"
    return f"role assignment create --role '{role}' --assignee {principal} --scope {_CLUSTER}", principal


def blob_tokens(account: str, container: str) -> list[tuple[str, str]]:
    """Returns both documents' commands that sign a SAS: with the account's key, and as a user."""
    now = datetime.now(UTC)
    start, end = (each.strftime("%Y-%m-%dT%H:%MZ") for each in (now, now + timedelta(days=2)))
    generate = f"storage container generate-sas --account-name {account} --name {container}"
    return [
        (f"{generate} --permissions rwld --start {start} --expiry {end} -o tsv", "sp=rwdl"),
        (f"{generate} --permissions acemdlrw --auth-mode login --as-user --expiry {end}", "skoid="),
    ]
