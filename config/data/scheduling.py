from __future__ import annotations

from typing import Any, Final

AGENT_POOL_LABEL = "kubernetes.azure.com/agentpool"
"""The ARM name of a node's pool."""
POOL_LABEL = "ai-on-aks/pool"
"""The key of a GPU pool in the settings."""
GPU_LABEL = "ai-on-aks/gpu"
"""AKS's accelerator label is not guaranteed on pools without AKS's driver."""
ACCELERATOR_LABEL = "kubernetes.azure.com/accelerator"
"""AKS's autoscaler reads it (cloudprovider/azure/azure_cloud_provider.go)."""
ALL_GPUS_COUNTED_SINCE = 1, 35
"""Since this version, AKS's autoscaler counts the GPUs of all nodes before each scale-up (kubernetes/autoscaler#10301).
"""
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
GPU_TAINT = "sku=gpu:NoSchedule"
SCRATCH_LABEL = "local-nvme-scratch"
""""true" on pools with `scratch`: makes one file system of a node's local NVMe disks."""
SCRATCH_MOUNT = "/mnt/nvme"
SCRATCH_FOLDER = f"{SCRATCH_MOUNT}/scratch"
"""Exists only once that file system is mounted; pods use it as a hostPath of type Directory."""
SYSTEM_NODES = {"kubernetes.azure.com/mode": "system"}
SYSTEM_PRIORITY = "system-cluster-critical"
"""Jobs depend on these operators: they are evicted last, except for parts of a node. MLBatch gives its operators
system-node-critical (project-codeflare/mlbatch, setup.k8s/*/manager_resources_patch.yaml).
"""
SYSTEM_TAINT = "CriticalAddonsOnly=true:NoSchedule"
SPOT_LABEL = "kubernetes.azure.com/scalesetpriority"
SPOT_TAINT = f"{SPOT_LABEL}=spot:NoSchedule"
TEAM_LABELS = {"mlbatch-team-namespace": "true"}
"""Kueue manages all jobs in namespaces with MLBatch's label."""
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
LOCAL_QUEUE = "default-queue"
BAD_NODE = "ai-on-aks/gpu-health=failed"
"""AppWrapper moves jobs away from these nodes."""
WRAPPER_ANNOTATION = "workload.codeflare.dev.appwrapper"
"""Annotations with this prefix count an AppWrapper's retries."""
WRAPPER_NAMESPACE, WRAPPER_CONFIG = "appwrapper-system", "appwrapper-operator-config"
"""AppWrapper's webhooks and roles require this namespace."""
AUTOPILOT_LABEL = "autopilot.ibm.com/gpuhealth"
"""IBM/autopilot, pkg/utils/nodelabels.go"""
HEALTH_TAINT = "aznhc"
"""Taints nodes that fail a check, with the value `failed`, as in Azure's guide ("Pre-Job Health Checks on AKS"). It
also begins annotations with the results.
"""
HEALTH_ACCOUNT = "aksnhc-sa"
HEALTH_ROLE = "aksnhc-role"
"""Azure's guide has the same name."""
CONDITION_PREFIX = "ai-on-aks/"
GPU_RESOURCE = "nvidia.com/gpu"
NVIDIA_RUNTIME = "nvidia"
"""The RuntimeClass of the GPU Operator's pods, and the prefix of its other ones (NVIDIA/gpu-operator v26.7.0,
controllers/object_controls.go, DefaultRuntimeClass).
"""
VOLCANO: Final = "volcano"
COSCHEDULER: Final = "scheduler-plugins-scheduler"
"""A stack uses only one of these as `schedulerName`, because two would allocate the same devices. The latter is
Kubernetes' scheduler with the plugin Coscheduling.
"""
VOLCANO_GROUP: Final = "scheduling.k8s.io/group-name"

SYSTEM_TOLERATIONS: list[dict[str, Any]] = [{"key": "CriticalAddonsOnly", "operator": "Exists"}]
"""For pods on the system pool, tainted or not."""
ON_SYSTEM_POOL: dict[str, Any] = {"nodeSelector": SYSTEM_NODES, "tolerations": SYSTEM_TOLERATIONS}
ANY_TAINT: list[dict[str, Any]] = [{"operator": "Exists"}]
"""For all DaemonSets on GPU nodes. A list of the pools' taints would change the pod template with each taint; driver
pods with the old template keep their operator's policy from being ready until they are restarted.
"""
