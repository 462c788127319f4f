"""Every `az` line of the upstream documents, in their order and with their options, and what it prints; names are ours.

Not here, since none of it can be had: `az extension add`, `az aks install-cli`, `az acr login`, and the Bicep file of
av-resim-on-aks, whose cluster is that of ai-on-aks here.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.support.arm import SUBSCRIPTION

HERE = f"/subscriptions/{SUBSCRIPTION.subscription_id}"
GROUP = f"{HERE}/resourceGroups/rg"
POOL = "--resource-group rg --cluster-name aks"
AKS = "--resource-group rg --name aks"
CLUSTER = f"{GROUP}/providers/Microsoft.ContainerService/managedClusters/aks"
FEATURE = "--name AKSInfinibandSupport --namespace Microsoft.ContainerService"
_RESIM_POOL = (
    f"aks nodepool add {POOL} --node-taints sku=gpu:NoSchedule --enable-cluster-autoscaler --min-count 1 "
    "--max-count 5 --node-count 1 --tags SkipGPUDriverInstall=True --priority Spot"
)
AI_ON_AKS = [  # https://github.com/edwardsp/ai-on-aks, README.md
    (f"feature register {FEATURE}", '"state": "Registering"'),
    (f"feature show {FEATURE} --query properties.state --output tsv", "Registered"),
    ("group create --name rg --location eastus", '"provisioningState": "Succeeded"'),
    (
        "acr create --resource-group rg --name aiimages --sku Basic --admin-enabled",
        '"loginServer": "aiimages.azurecr.io"',
    ),
    (
        f"aks create {AKS} --node-resource-group rg-nrg --enable-managed-identity --node-count 2 --generate-ssh-keys "
        "--location eastus --node-vm-size Standard_D2s_v3 --nodepool-name system --os-sku Ubuntu "
        "--attach-acr aiimages",
        '"nodeResourceGroup": "rg-nrg"',
    ),
    (
        f"aks nodepool add {POOL} --name ndv5 --node-count 1 --node-vm-size Standard_ND96isr_H100_v5 "
        "--node-osdisk-size 128 --os-sku Ubuntu --tags SkipGPUDriverInstall=true",
        '"maxSurge": "10%"',
    ),
    (f"aks get-credentials {AKS} --file kubeconfig", "Merged"),
    (f"aks nodepool scale {POOL} --name ndv5 --node-count 2", '"count": 2'),
    (
        "aks nodepool update -g rg --cluster-name aks -n ndv5 --labels local-nvme-scratch=true",
        '"local-nvme-scratch": "true"',
    ),
]
AV_RESIM = [  # https://github.com/edwardsp/av-resim-on-aks, README.md
    (f"aks update {AKS} --attach-acr aiimages", '"name": "aks"'),
    ("aks show -g rg -n aks --query id -o tsv", CLUSTER.replace("resourceGroups", "resourcegroups")),
    (f"aks get-credentials {AKS} --file kubeconfig --overwrite-existing", "Merged"),
    (f"{_RESIM_POOL} --name nc4ast4 --node-vm-size Standard_NC4as_T4_v3", '"scaleSetPriority": "Spot"'),
    (
        f"aks nodepool update {POOL} --nodepool-name nc4ast4 --labels nvidia.com/device-plugin.config=tesla-t4-ts2",
        '"nvidia.com/device-plugin.config": "tesla-t4-ts2"',
    ),
]
LOG_OUT_AND_IN = [("logout", ""), ("login --identity", '"state": "Enabled"')]
REFUSED = [  # no such size: the document means Standard_NC48ads_A100_v4
    (f"{_RESIM_POOL} --name nc48a100 --node-vm-size Standard_NCA100ads_A100_v4", "is not supported for subscription"),
]


def role_of_machine(principal: str) -> tuple[str, str]:
    """How av-resim-on-aks lets the machine into the cluster that runs its lines."""
    role = "Azure Kubernetes Service RBAC Cluster Admin"
    return f"role assignment create --role '{role}' --assignee {principal} --scope {CLUSTER}", principal


def blob_tokens(account: str, container: str) -> list[tuple[str, str]]:
    """How both documents sign for a container: with the account's key, and as a person."""
    now = datetime.now(UTC)
    start, end = (each.strftime("%Y-%m-%dT%H:%MZ") for each in (now, now + timedelta(days=2)))
    generate = f"storage container generate-sas --account-name {account} --name {container}"
    return [
        (f"{generate} --permissions rwld --start {start} --expiry {end} -o tsv", "sp=rwdl"),
        (f"{generate} --permissions acemdlrw --auth-mode login --as-user --expiry {end}", "skoid="),
    ]
