"""What the API server refuses in namespaces of teams: what goes past their queue, or takes what is not theirs. Pure.

Rights do not say it (rights.py): members make jobs, whatever these ask for, AppWrapper makes for them what they may
not, and others may have more rights there. Kueue holds back what has no queue, but tells nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from config.facts.scheduling import LOCAL_QUEUE, NVIDIA_RUNTIME, TEAM_LABELS
from operators._rights import policy_binding
from operators.kueue.rights import CLASSES, FRAMEWORKS

QUEUES, PODS, SERVICES, HOPELESS = "team-queues", "team-pods", "team-services", "team-hopeless-jobs"
"""The policies, and their bindings. The last one only warns."""
LABEL = "kueue.x-k8s.io/queue-name"
_QUEUE_IT = f"put the label {LABEL}: {LOCAL_QUEUE} into its metadata"
_CONTROLLER = (
    "request.userInfo.username.startsWith('system:') && "
    "!request.userInfo.username.startsWith('system:serviceaccount:' + request.namespace + ':')"
)
"""Whether a part of the cluster asks, which is no member's: Kubernetes keeps these names for itself."""
_OWNED = (
    "has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(owner, "
    "has(owner.controller) && owner.controller && owner.kind != 'CronJob')"
)
"""Whether it is a part of another object, which has queued for all of them; but for CronJobs, which do not queue."""
_SPECS = {
    "Pod": "[dyn(object).spec]",
    "AppWrapper": "dyn(object).spec.components.map(each, each.template)"
    ".filter(each, has(each.spec)).map(each, each.spec.?template.?spec.orValue(each.spec))",
    "Workload": "dyn(object).spec.podSets.map(each, each.template.spec)",
}
"""Where the pods of a kind are described; in all others it is as in Jobs."""


def policies(scheduler: str | None, gpus: int, of_node: Mapping[str, int]) -> dict[str, dict[str, Any]]:
    """Returns the specs of all policies by their names.

    Args:
        scheduler: The only scheduler that may place pods on GPU nodes, if there is such a rule.
        gpus: The GPUs of all quotas together.
        of_node: The most that one node has of each device, by resource; GPUs come first.
    """
    return {QUEUES: _queues(), PODS: _pods(scheduler), SERVICES: _services(), HOPELESS: _hopeless(gpus, of_node)}


def binding(policy: str) -> dict[str, Any]:
    """Where it holds: in namespaces of teams."""
    return policy_binding(policy, TEAM_LABELS, action="Warn" if policy == HOPELESS else "Deny")


def _queues() -> dict[str, Any]:
    """Jobs, of all kinds that queue. Later changes are looked at where they are of what is looked at: objects that were
    there before the policy have to be let go.

    Kueue starts whatever its owner has queued for (0.19.2, pkg/controller/jobframework/reconciler.go,
    FindAncestorJobManagedByKueue, by the controller reference alone), so that only those who make parts of others may
    say who that is.
    """
    groups: dict[str, list[str]] = {}
    for framework, resource in FRAMEWORKS.items():
        groups.setdefault(framework.partition("/")[0], []).append(resource)
    changed = " || ".join(
        f"object.metadata.{part} != oldObject.metadata.{part}" for part in ("?ownerReferences", f"?labels[?'{LABEL}']")
    )
    return {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [
                _rule(group, resources, "CREATE", "UPDATE") for group, resources in sorted(groups.items())
            ],
        },
        "matchConditions": [{"name": "queue-or-owner", "expression": f"oldObject == null || {changed}"}],
        "variables": [
            {"name": "queued", "expression": f"object.metadata.?labels[?'{LABEL}'].orValue('') != ''"},
            {"name": "controller", "expression": _CONTROLLER},
            {"name": "owned", "expression": _OWNED},
        ],
        "validations": [
            _validation(
                "variables.queued || variables.controller && (variables.owned || oldObject != null)",
                f"it has no queue, and in a team's namespace nothing starts without: {_QUEUE_IT}",
            ),
            _validation(
                "!variables.owned || variables.controller",
                "its metadata says that it is part of another object, which would take it past the queue: leave "
                "ownerReferences out",
            ),
        ],
    }


def _hopeless(gpus: int, of_node: Mapping[str, int]) -> dict[str, Any]:
    """Jobs that wait as long as quotas, queues and pools are as they are, of the kinds whose pods are counted here.
    An administrator may change these, so the jobs are only warned of.
    """
    return {
        "failurePolicy": "Ignore",
        "matchConstraints": {
            "resourceRules": [
                _rule("batch", ["jobs"], "CREATE"),
                _rule("kubeflow.org", ["pytorchjobs"], "CREATE"),
                _rule("workload.codeflare.dev", ["appwrappers"], "CREATE"),
            ],
        },
        "variables": [{"name": "pods", "expression": _devices_of_job(of_node)}],
        "validations": [
            _validation(
                f"object.metadata.?labels[?'{LABEL}'].orValue('') in ['', '{LOCAL_QUEUE}']",
                f"it waits until somebody makes the queue that it names: teams have one, {LOCAL_QUEUE}",
            ),
            _validation(
                f"variables.pods.map(pod, pod[0] * pod[1]).sum() <= {gpus}",
                f"it waits for more GPUs than all quotas have together, which are {gpus}: ask for fewer",
            ),
            *(
                _validation(
                    f"variables.pods.all(pod, pod[{at}] <= {most})",
                    f"it has a pod that no node can run: nodes have at most {most} {name}. Ask for fewer in each pod",
                )
                for at, (name, most) in enumerate(of_node.items(), 1)
            ),
        ],
    }


def _devices_of_job(names: Iterable[str]) -> str:
    """Returns an expression for a list: for each kind of pods their number, and what one asks for of each resource."""

    def of(replicas: str, pod: str) -> str:
        limits = (f"{pod}.containers.map(c, dyn(c.?resources.?limits[?'{name}'].orValue('0')))" for name in names)
        each = (f"int({limit}.map(limit, type(limit) == int ? limit : int(limit)).sum())" for limit in limits)
        return f"[{', '.join([f'int({replicas}.orValue(1))', *each])}]"

    wrapped, trained = "dyn(object).spec.components", "dyn(object).spec.pytorchReplicaSpecs"
    of_wrapped = of("each.template.spec.?parallelism", "each.template.spec.template.spec")
    of_trained = of(f"{trained}[kind].?replicas", f"{trained}[kind].template.spec")
    return (
        "request.kind.kind == 'AppWrapper' ? "
        f"{wrapped}.filter(each, each.template.kind == 'Job').map(each, {of_wrapped}) : "
        f"(request.kind.kind == 'PyTorchJob' ? {trained}.map(kind, {of_trained}) : "
        f"[{of('dyn(object).spec.?parallelism', 'dyn(object).spec.template.spec')}])"
    )


def _pods(scheduler: str | None) -> dict[str, Any]:
    """Pods, and what describes some: whatever is told of a Job at once, its user sees; of pods it is too late for that.

    Kueue's own record of a job has the pods of all kinds that queue. With the runtime class of NVIDIA's own pods, a
    container has the GPUs that its environment names, whether it asked for any or not (nvidia-container-toolkit,
    internal/modifier/cdi.go, by VisibleDevices of internal/config/image/cuda_image.go: also of one without privileges,
    as accept-nvidia-visible-devices-envvar-when-unprivileged is true by default, api/config/v1/config.go).
    """
    described = "has(dyn(object).spec.template) ? [dyn(object).spec.template.spec] : []"
    for kind, expression in _SPECS.items():
        described = f"request.kind.kind == '{kind}' ? {expression} : ({described})"
    containers = "(pod.?containers.orValue([]) + pod.?initContainers.orValue([]))"
    devices = "each.?resources.?limits.orValue({})"
    gpu = f"{devices}.exists(name, name.startsWith('nvidia.com/') && string({devices}[name]) != '0')"
    names = ", ".join(f"'{name}'" for name in CLASSES)
    queuing = "['Job', 'AppWrapper', 'Workload']"
    return {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [
                _rule("", ["pods", "replicationcontrollers"], "CREATE"),
                _rule("apps", ["deployments", "statefulsets", "daemonsets", "replicasets"], "CREATE", "UPDATE"),
                _rule("batch", ["jobs"], "CREATE"),
                _rule("workload.codeflare.dev", ["appwrappers"], "CREATE"),
                _rule("kueue.x-k8s.io", ["workloads"], "CREATE"),
            ],
        },
        "variables": [
            {"name": "pods", "expression": described},
            {"name": "gpuPods", "expression": f"variables.pods.filter(pod, {containers}.exists(each, {gpu}))"},
            {"name": "controller", "expression": _CONTROLLER},
            {"name": "owned", "expression": _OWNED},
        ],
        "validations": [
            _validation(
                f"request.kind.kind in {queuing} || size(variables.gpuPods) == 0 || "
                "variables.controller && (variables.owned || oldObject != null)",
                f"it would take GPUs past the queue: make a Job of it, or wrap it in an AppWrapper, and {_QUEUE_IT}",
            ),
            _validation(
                f"variables.pods.all(pod, pod.?priorityClassName.orValue('') in ['', {names}])",
                "it takes a priority that is no team's: as priorityClassName of its pods write "
                f"{', '.join(CLASSES)}, or nothing",
            ),
            _validation(
                f"variables.pods.all(pod, !pod.?runtimeClassName.orValue('').startsWith('{NVIDIA_RUNTIME}'))",
                "its runtime would hand it all GPUs of its node, which it then has past the queue: leave "
                "runtimeClassName out, GPUs come by their resource",
            ),
            *([_of_scheduler(scheduler)] if scheduler else []),
        ],
    }


def _services() -> dict[str, Any]:
    """Rejects Services that are reachable from outside the cluster: dashboards there need no password, and an external
    address receives traffic meant for others (CVE-2020-8554). It checks only changes of the spec, so that the cloud
    controller can remove the load balancer of an older Service.
    """
    return {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [_rule("", ["services"], "CREATE", "UPDATE")]},
        "matchConditions": [{"name": "spec", "expression": "oldObject == null || object.spec != oldObject.spec"}],
        "validations": [
            _validation(
                "!(object.spec.?type.orValue('ClusterIP') in ['LoadBalancer', 'NodePort']) && "
                "size(object.spec.?externalIPs.orValue([])) == 0",
                "it would be reached from outside of the cluster: write type: ClusterIP and no externalIPs, and use "
                "kubectl port-forward",
            ),
        ],
    }


def _of_scheduler(scheduler: str) -> dict[str, Any]:
    """Nothing writes it for them: what Kubernetes has for that (MutatingAdmissionPolicy) is on by default from 1.36 on
    (KEP-3962), and coscheduling is too old for it. AppWrapper does, so that Kueue's record, made before, says nothing.
    """
    return _validation(
        f"request.kind.kind == 'Workload' || variables.gpuPods.all(pod, "
        f"pod.?schedulerName.orValue('{scheduler}') == '{scheduler}')",
        f"only {scheduler} may place its pods, which ask for GPUs, or these would be given away twice: write "
        f"schedulerName: {scheduler} beside their containers",
    )


def _rule(group: str, resources: list[str], *operations: str) -> Mapping[str, Any]:
    return {"apiGroups": [group], "apiVersions": ["*"], "operations": list(operations), "resources": resources}


def _validation(expression: str, message: str) -> dict[str, Any]:
    return {"expression": expression, "message": message, "reason": "Forbidden"}
