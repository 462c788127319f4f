"""Pods before they are made: those of a gang are made once Volcano has let it in, by the training operator, too
(DelayPodCreationDueToPodGroup).
"""

from __future__ import annotations

from config.facts.scheduling import VOLCANO_GROUP
from diagnosis.cluster import POD_GROUP, Cluster, owners_of
from diagnosis.shapes import REPLICA_SPECS
from k8s.objects import Object


def templates(cluster: Cluster, workload: Object) -> list[Object]:
    """Returns the pods of a Job, a Volcano job or a training job as they will be."""
    spec, uid, namespace = workload["spec"], workload["metadata"]["uid"], workload["metadata"]["namespace"]
    groups = [group["metadata"]["name"] for group in cluster.all(POD_GROUP, namespace) if uid in owners_of(group)]
    ranks = [rank for name in REPLICA_SPECS for rank in spec.get(name, {}).values()] if groups else []
    single = [{"replicas": spec.get("parallelism", 1), **spec}] if "template" in spec else ranks
    pods = []
    for task in spec.get("tasks", single):
        annotations = task["template"].get("metadata", {}).get("annotations", {})
        metadata = {
            "uid": "",
            "name": workload["metadata"]["name"],
            "namespace": namespace,
            "annotations": {VOLCANO_GROUP: groups[0]} | annotations if groups else annotations,
        }
        pod = {"metadata": metadata, "spec": {"schedulerName": spec.get("schedulerName"), **task["template"]["spec"]}}
        pods += [pod] * int(task.get("replicas", 1))
    return pods
