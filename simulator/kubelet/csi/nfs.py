"""NFS mounts of azurefile-csi-driver. A node needs no secret to mount a share, only a network connection.

Messages are from kubernetes-sigs/azurefile-csi-driver 1.35.1, nodeserver.go (NodeStageVolume), and mount-utils.
"""

from __future__ import annotations

import hashlib

from k8s.objects import Object
from simulator.kubelet.cloud import Cloud

_FIXED = ["vers=4,minorversion=1,sec=sys"]
_HELP = "Please refer to http://aka.ms/filemounterror for possible causes and solutions for mount errors."


def is_asked(volume: Object) -> bool:
    attributes = volume["spec"]["csi"].get("volumeAttributes") or {}
    return bool(attributes.get("protocol") == "nfs")


def why_not(volume: Object, cloud: Cloud) -> str | None:
    """Returns the driver's error if the volume cannot be mounted, or None."""
    csi = volume["spec"]["csi"]
    handle, attributes = csi["volumeHandle"], csi["volumeAttributes"]
    account, share = handle.split("#")[1:3]
    server = attributes.get("server") or f"{account}.file.core.windows.net"
    export = f"/{account}/{share}"
    output = cloud.nfs_refusal(server, export)
    if output is None:
        return None
    folder = hashlib.sha256(handle.encode()).hexdigest()
    target = f"/var/lib/kubelet/plugins/kubernetes.io/csi/{csi['driver']}/{folder}/globalmount"
    options = ",".join([*(volume["spec"].get("mountOptions") or []), *_FIXED])
    return (
        f"rpc error: code = Internal desc = volume({handle}) mount {server}:{export} on {target} failed with mount "
        f"failed: exit status 32\nMounting command: mount\nMounting arguments: -t nfs -o {options} {server}:{export} "
        f"{target}\nOutput: {output}\n\n{_HELP}"
    )
