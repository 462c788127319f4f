"""Labels, taints and tolerations that pools, operators and workloads share."""

from __future__ import annotations

from typing import Any, Final

AGENT_POOL_LABEL = "kubernetes.azure.com/agentpool"
"""AKS's label: the ARM name of the pool."""
POOL_LABEL = "ai-on-aks/pool"
"""Our label: the key of a GPU pool in the settings."""
GPU_LABEL = "ai-on-aks/gpu"
"""Our label: "true" on every GPU node. AKS's accelerator label is not guaranteed without AKS's driver."""
ACCELERATOR_LABEL = "kubernetes.azure.com/accelerator"
"""AKS's label of GPU nodes, for its autoscaler (cloudprovider/azure/azure_cloud_provider.go)."""
ALL_GPUS_COUNTED_SINCE = 1, 35
"""The first Kubernetes version with an AKS autoscaler that counts the GPUs of all nodes before each scale-up
(kubernetes/autoscaler#10301).
"""
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
GPU_TAINT = "sku=gpu:NoSchedule"
SCRATCH_LABEL = "local-nvme-scratch"
"""The label of nodes with one file system of all local NVMe disks, which an operator creates; "true" on pools with
`scratch`.
"""
SCRATCH_MOUNT = "/mnt/nvme"
SCRATCH_FOLDER = f"{SCRATCH_MOUNT}/scratch"
"""A folder in the file system at SCRATCH_MOUNT. Pods use it as a hostPath of type Directory, so they start only after
the mount.
"""
SYSTEM_NODES = {"kubernetes.azure.com/mode": "system"}
SYSTEM_PRIORITY = "system-cluster-critical"
"""The priority class of operators that jobs depend on. Only pods with system-node-critical are evicted later; MLBatch
uses that class (project-codeflare/mlbatch, setup.k8s/*/manager_resources_patch.yaml).
"""
SYSTEM_TAINT = "CriticalAddonsOnly=true:NoSchedule"
SPOT_LABEL = "kubernetes.azure.com/scalesetpriority"
SPOT_TAINT = f"{SPOT_LABEL}=spot:NoSchedule"
TEAM_LABELS = {"mlbatch-team-namespace": "true"}
"""MLBatch's labels of team namespaces, where Kueue manages all jobs."""
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
LOCAL_QUEUE = "default-queue"
BAD_NODE = "ai-on-aks/gpu-health=failed"
"""Our label for nodes with a failing GPU. AppWrapper moves jobs off these nodes."""
WRAPPER_ANNOTATION = "workload.codeflare.dev.appwrapper"
"""The prefix of AppWrapper's annotations with limits and periods of retries."""
WRAPPER_NAMESPACE, WRAPPER_CONFIG = "appwrapper-system", "appwrapper-operator-config"
"""AppWrapper's namespace, which its webhooks and roles require, and its ConfigMap."""
AUTOPILOT_LABEL = "autopilot.ibm.com/gpuhealth"
"""Autopilot's label with the result of its GPU checks (IBM/autopilot, pkg/utils/nodelabels.go)."""
HEALTH_TAINT = "aznhc"
"""The key of the taint on nodes that fail a check, and the prefix of annotations with the results. The taint's value is
`failed`, as in Azure's guide ("Pre-Job Health Checks on AKS").
"""
HEALTH_ACCOUNT = "aksnhc-sa"
HEALTH_ROLE = "aksnhc-role"
"""The service account and role of pods that check their node, as in Azure's guide."""
CONDITION_PREFIX = "ai-on-aks/"
GPU_RESOURCE = "nvidia.com/gpu"
NVIDIA_RUNTIME = "nvidia"
"""The RuntimeClass of the GPU Operator's pods, and the prefix of its other RuntimeClasses (NVIDIA/gpu-operator v26.7.0,
controllers/object_controls.go, DefaultRuntimeClass).
"""
VOLCANO: Final = "volcano"
COSCHEDULER: Final = "scheduler-plugins-scheduler"
"""The possible schedulers of pods on GPU nodes, as in `schedulerName`. A stack uses only one: two would allocate the
same devices. COSCHEDULER is Kubernetes' scheduler with the plugin Coscheduling.
"""
VOLCANO_GROUP: Final = "scheduling.k8s.io/group-name"

SYSTEM_TOLERATIONS: list[dict[str, Any]] = [{"key": "CriticalAddonsOnly", "operator": "Exists"}]
"""The tolerations of pods on the system pool, which may have a taint."""
ON_SYSTEM_POOL: dict[str, Any] = {"nodeSelector": SYSTEM_NODES, "tolerations": SYSTEM_TOLERATIONS}
ANY_TAINT: list[dict[str, Any]] = [{"operator": "Exists"}]
"""The tolerations of DaemonSets on GPU nodes. If they listed the pools' taints, a new taint would change the pod
template. The operator's policy would then not be ready until all driver pods restart.
"""
