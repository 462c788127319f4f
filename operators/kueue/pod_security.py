"""The pod-security level `baseline` with one right more: to pin memory, which RDMA needs and that level forbids. Pure.

Namespaces have a level or none, and no exception (KEP-2579). So those of teams that pin memory are `privileged` to it,
and a policy says what `baseline` does (k8s.io/pod-security-admission, policy/check_*.go, "baseline", 1.35).
"""

from __future__ import annotations

from typing import Any

NAME = "team-pod-security"
LABELS = {"ai-on-aks/pins-memory": "true"}
"""Of namespaces where it holds."""
_CAPABILITIES = (
    *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP"),
    *("SETGID", "SETPCAP", "SETUID", "SYS_CHROOT", "IPC_LOCK"),
)
_SYSCTLS = (
    *("kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_local_reserved_ports"),
    *("net.ipv4.ip_unprivileged_port_start", "net.ipv4.ping_group_range", "net.ipv4.tcp_fin_timeout"),
    *("net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_keepalive_time"),
    *("net.ipv4.tcp_rmem", "net.ipv4.tcp_syncookies", "net.ipv4.tcp_wmem"),
)
_SELINUX = ("", "container_t", "container_init_t", "container_kvm_t", "container_engine_t")
_APPARMOR = "container.apparmor.security.beta.kubernetes.io/"


def policy() -> dict[str, Any]:
    """The spec of the ValidatingAdmissionPolicy."""
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"]}
    return {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [{**pods, "resources": ["pods", "pods/ephemeralcontainers"]}]},
        "variables": [
            {
                "name": "containers",
                "expression": "object.spec.containers + object.spec.?initContainers.orValue([]) + "
                "dyn(object.spec.?ephemeralContainers.orValue([]))",
            },
            {
                "name": "contexts",
                "expression": "variables.containers.map(each, dyn(each.?securityContext.orValue({}))) + "
                "[dyn(object.spec.?securityContext.orValue({}))]",
            },
        ],
        "validations": [
            {"expression": expression, "message": f"pods of this team may not {what}", "reason": "Forbidden"}
            for what, expression in _rules().items()
        ],
    }


def _rules() -> dict[str, str]:
    """What all of a pod's contexts, containers and volumes must be, by what it may not do else."""

    def of_contexts(condition: str) -> str:
        return f"variables.contexts.all(each, {condition})"

    hooks = ("livenessProbe", "readinessProbe", "startupProbe")
    probes = [f"each.?{hook}.?{how}.?host.orValue('') == ''" for hook in hooks for how in ("httpGet", "tcpSocket")]
    lifecycle = [
        f"each.?lifecycle.?{hook}.?{how}.?host.orValue('') == ''"
        for hook in ("postStart", "preStop")
        for how in ("httpGet", "tcpSocket")
    ]
    return {
        "be privileged": of_contexts("!each.?privileged.orValue(false)"),
        "have capabilities beyond those of the level baseline, and IPC_LOCK": of_contexts(
            f"each.?capabilities.?add.orValue([]).all(name, name in {_listed(_CAPABILITIES)})"
        ),
        "share network, processes or memory with their node": (
            "!object.spec.?hostNetwork.orValue(false) && !object.spec.?hostPID.orValue(false) && "
            "!object.spec.?hostIPC.orValue(false)"
        ),
        "mount folders of their node": "object.spec.?volumes.orValue([]).all(each, !has(each.hostPath))",
        "take ports of their node": (
            "variables.containers.all(each, each.?ports.orValue([]).all(port, port.?hostPort.orValue(0) == 0))"
        ),
        "have probes or hooks reach other hosts": (
            f"variables.containers.all(each, {' && '.join([*probes, *lifecycle])})"
        ),
        "see more of /proc": of_contexts("each.?procMount.orValue('Default') == 'Default'"),
        "do without seccomp": of_contexts("each.?seccompProfile.?type.orValue('') != 'Unconfined'"),
        "do without AppArmor": " && ".join(
            [
                of_contexts("each.?appArmorProfile.?type.orValue('') != 'Unconfined'"),
                "object.metadata.?annotations.orValue({}).all(key, "
                f"!key.startsWith('{_APPARMOR}') || object.metadata.annotations[key] == '' || "
                "object.metadata.annotations[key] == 'runtime/default' || "
                "object.metadata.annotations[key].startsWith('localhost/'))",
            ]
        ),
        "choose another context of SELinux": of_contexts(
            f"each.?seLinuxOptions.?type.orValue('') in {_listed(_SELINUX)} && "
            "each.?seLinuxOptions.?user.orValue('') == '' && each.?seLinuxOptions.?role.orValue('') == ''"
        ),
        "set sysctls but for safe ones": (
            f"object.spec.?securityContext.?sysctls.orValue([]).all(each, each.name in {_listed(_SYSCTLS)})"
        ),
        "be processes of a Windows host": of_contexts("!each.?windowsOptions.?hostProcess.orValue(false)"),
    }


def _listed(names: tuple[str, ...]) -> str:
    return f"[{', '.join(repr(name) for name in names)}]"
