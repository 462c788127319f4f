"""The labels, taints and tolerations that pools, operators and workloads agree on."""

from __future__ import annotations

from typing import Any, Final

AGENT_POOL_LABEL = "kubernetes.azure.com/agentpool"
"""AKS's own: the ARM name of a node's pool."""
POOL_LABEL = "ai-on-aks/pool"
"""Ours: the key of a GPU pool in the settings."""
GPU_LABEL = "ai-on-aks/gpu"
"""Ours: "true" on every GPU node. AKS's accelerator label is not promised on pools without AKS's driver."""
ACCELERATOR_LABEL = "kubernetes.azure.com/accelerator"
"""AKS's own: of GPU nodes, by which its autoscaler knows them (cloudprovider/azure/azure_cloud_provider.go)."""
ALL_GPUS_COUNTED_SINCE = 1, 35
"""The version of Kubernetes since which AKS's autoscaler counts the GPUs of all nodes before each scale-up
(kubernetes/autoscaler#10301).
"""
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
"""Kubernetes' own: the VM size of a node."""
GPU_TAINT = "sku=gpu:NoSchedule"
"""Of GPU nodes, unless the settings say otherwise."""
SCRATCH_LABEL = "local-nvme-scratch"
"""Of nodes whose local NVMe disks are made one file system; the program sets it to "true" on pools with `scratch`."""
SCRATCH_MOUNT = "/mnt/nvme"
"""Where the file system of a node's local NVMe disks is mounted on the node."""
SCRATCH_FOLDER = f"{SCRATCH_MOUNT}/scratch"
"""Lies on that file system and so is there only once it is mounted: pods take it as a hostPath of type Directory."""
SYSTEM_NODES = {"kubernetes.azure.com/mode": "system"}
"""Node selector of the system pool."""
SYSTEM_PRIORITY = "system-cluster-critical"
"""Class of what jobs wait for when it is evicted: the last to be, of what is no part of a node. MLBatch gives its
operators system-node-critical (project-codeflare/mlbatch, setup.k8s/*/manager_resources_patch.yaml).
"""
SYSTEM_TAINT = "CriticalAddonsOnly=true:NoSchedule"
SPOT_LABEL = "kubernetes.azure.com/scalesetpriority"
SPOT_TAINT = f"{SPOT_LABEL}=spot:NoSchedule"
TEAM_LABELS = {"mlbatch-team-namespace": "true"}
"""MLBatch's own: of namespaces of teams, in which Kueue manages all jobs."""
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
"""Kueue's label of jobs: the queue that they wait in."""
LOCAL_QUEUE = "default-queue"
"""Of every team: its jobs name this one."""
BAD_NODE = "ai-on-aks/gpu-health=failed"
"""Ours: the label by which whoever knows of a failing GPU has AppWrapper take jobs away from its node."""
WRAPPER_ANNOTATION = "workload.codeflare.dev.appwrapper"
"""Begins what an AppWrapper says of its retries."""
WRAPPER_NAMESPACE, WRAPPER_CONFIG = "appwrapper-system", "appwrapper-operator-config"
"""AppWrapper's: where its release is, as its webhooks and roles name it, and the ConfigMap that configures it."""
AUTOPILOT_LABEL = "autopilot.ibm.com/gpuhealth"
"""Autopilot's: what its checks of a node's GPUs have found (IBM/autopilot, pkg/utils/nodelabels.go)."""
HEALTH_TAINT = "aznhc"
"""Key of the taint of nodes whose check has failed, its value `failed`; as Azure's guide has it ("Pre-Job Health Checks
on AKS"). Annotations that begin so, too, hold what the check has found.
"""
HEALTH_ACCOUNT = "aksnhc-sa"
HEALTH_ROLE = "aksnhc-role"
"""Service account of pods that check their node, and what it may, as that guide has them."""
CONDITION_PREFIX = "ai-on-aks/"
"""Ours: begins the types of nodes' conditions that our node-problem-detector sets."""
GPU_RESOURCE = "nvidia.com/gpu"
NVIDIA_RUNTIME = "nvidia"
"""RuntimeClass of the GPU Operator's own pods (NVIDIA/gpu-operator v26.7.0, controllers/object_controls.go,
DefaultRuntimeClass); names of its others begin so, too.
"""
VOLCANO: Final = "volcano"
COSCHEDULER: Final = "scheduler-plugins-scheduler"
"""These, as pods name them, may place pods on GPU nodes. A stack has one of them, for a second would give away devices
that the first has given already. The latter is Kubernetes' own with the plugin Coscheduling.
"""
VOLCANO_GROUP: Final = "scheduling.k8s.io/group-name"
"""Annotation of pods: the PodGroup that Volcano counts them to."""

SYSTEM_TOLERATIONS: list[dict[str, Any]] = [{"key": "CriticalAddonsOnly", "operator": "Exists"}]
"""For what runs on the system pool, tainted or not."""
ON_SYSTEM_POOL: dict[str, Any] = {"nodeSelector": SYSTEM_NODES, "tolerations": SYSTEM_TOLERATIONS}
"""Where pods of operators run, as pods and most charts have it."""
ANY_TAINT: list[dict[str, Any]] = [{"operator": "Exists"}]
"""Tolerations of every DaemonSet on GPU nodes: the pools' taints one by one would change its pods' template with each
taint, and drivers of the old template keep their operator's policy from being ready until somebody restarts them.
"""
