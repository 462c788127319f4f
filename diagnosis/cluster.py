"""Reads a cluster's objects for a diagnosis: each kind once, and only on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from diagnosis.shapes import document, shaped
from k8s.objects import Object, has_ended, is_ready


@dataclass(frozen=True)
class Kind:
    """A Kubernetes kind; `plural` is its name in URLs."""

    api_version: str
    name: str
    plural: str
    others: tuple[str, ...] = field(default=(), compare=False)
    """API versions of other releases. The fields that a diagnosis reads are the same."""

    @property
    def resource(self) -> str:
        """The unambiguous name for kubectl, such as `jobs.v1.batch`."""
        group, _, version = self.api_version.rpartition("/")
        return ".".join([self.plural, version, group]) if group else self.plural


POD = Kind("v1", "Pod", "pods")
EVENT = Kind("v1", "Event", "events", ("events.k8s.io/v1",))
CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps")
CLAIM = Kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims")
STORAGE_CLASS = Kind("storage.k8s.io/v1", "StorageClass", "storageclasses")
NODE = Kind("v1", "Node", "nodes")
DAEMON_SET = Kind("apps/v1", "DaemonSet", "daemonsets")
REPLICA_SET = Kind("apps/v1", "ReplicaSet", "replicasets")
DEPLOYMENT = Kind("apps/v1", "Deployment", "deployments")
STATEFUL_SET = Kind("apps/v1", "StatefulSet", "statefulsets")
JOB = Kind("batch/v1", "Job", "jobs")
VOLCANO_JOB = Kind("batch.volcano.sh/v1alpha1", "Job", "jobs")
TRAINING_JOBS = {
    name.lower(): Kind(
        "kubeflow.org/v1", name, f"{name.lower()}s", ("kubeflow.org/v2beta1",) if name == "MPIJob" else ()
    )
    for name in ("PyTorchJob", "TFJob", "MPIJob", "XGBoostJob", "PaddleJob", "JAXJob")
}
"""The kinds of the training operator 1.9.4, and the MPIJob of the MPI operator 0.6: their status is a JobStatus
(pkg/apis/kubeflow.org/v1/common_types.go).
"""
PYTORCH_JOB = TRAINING_JOBS["pytorchjob"]
RAY_CRON_JOB = Kind("ray.io/v1", "RayCronJob", "raycronjobs")
RAY_SERVICE = Kind("ray.io/v1", "RayService", "rayservices")
RAY_JOB = Kind("ray.io/v1", "RayJob", "rayjobs")
RAY_CLUSTER = Kind("ray.io/v1", "RayCluster", "rayclusters")
APP_WRAPPER = Kind("workload.codeflare.dev/v1beta2", "AppWrapper", "appwrappers")
POD_GROUP = Kind("scheduling.volcano.sh/v1beta1", "PodGroup", "podgroups")
KUEUE_BEFORE = ("kueue.x-k8s.io/v1beta1",)
"""The only API version in Kueue before 0.15."""
QUEUED = Kind("kueue.x-k8s.io/v1beta2", "Workload", "workloads", KUEUE_BEFORE)
TRAIN_JOB = Kind("trainer.kubeflow.org/v1alpha1", "TrainJob", "trainjobs")
JOB_SET = Kind("jobset.x-k8s.io/v1alpha2", "JobSet", "jobsets")
LEADER_WORKER_SET = Kind("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "leaderworkersets")
CRON_JOB = Kind("batch/v1", "CronJob", "cronjobs")
CLUSTER_POLICY = Kind("nvidia.com/v1", "ClusterPolicy", "clusterpolicies")
RESOURCE_SLICE = Kind("resource.k8s.io/v1", "ResourceSlice", "resourceslices")
NIC_POLICY = Kind("mellanox.com/v1alpha1", "NicClusterPolicy", "nicclusterpolicies")
WORKLOADS = {
    "appwrapper": APP_WRAPPER,
    "raycronjob": RAY_CRON_JOB,
    "rayservice": RAY_SERVICE,
    "rayjob": RAY_JOB,
    "trainjob": TRAIN_JOB,
    "jobset": JOB_SET,
    "leaderworkerset": LEADER_WORKER_SET,
    "cronjob": CRON_JOB,
    "vcjob": VOLCANO_JOB,
    "job": JOB,
    "deployment": DEPLOYMENT,
    "statefulset": STATEFUL_SET,
    "daemonset": DAEMON_SET,
    **TRAINING_JOBS,
    "raycluster": RAY_CLUSTER,
    "pod": POD,
}
"""Workload kinds by their kubectl names. Each kind comes before the kinds that its objects create."""
MAKERS = (REPLICA_SET, *(kind for kind in WORKLOADS.values() if kind not in (APP_WRAPPER, RAY_CRON_JOB, POD)))

Read = Callable[[Kind, str], list[Object]]
"""Returns all objects of a kind in a namespace, or in all for an empty text. Empty if the cluster lacks the kind."""


class ReadFailed(Exception):
    """Raised if the objects of a kind cannot be read."""


class Cluster:
    """A snapshot of the cluster. It reads each kind once and keeps the objects, so a later diagnosis needs a new
    Cluster.
    """

    def __init__(self, read: Read, only: str = "") -> None:
        self._read = read
        self._only = only
        self._known: dict[tuple[Kind, str], list[Object]] = {}
        self._nodes: dict[str, Object] = {}
        self._others: dict[str, list[tuple[Kind, Object]]] = {}

    def all(self, kind: Kind, namespace: str = "") -> list[Object]:
        """Returns all objects of a kind, in one namespace or in all namespaces.

        Reads the pods of all namespaces at once, so that a pod has the same state in the whole diagnosis.
        """
        if self._only and namespace != self._only:
            return []
        if kind == POD and namespace and not self._only:
            return [pod for pod in self.all(POD) if pod["metadata"]["namespace"] == namespace]
        if (kind, namespace) not in self._known:
            versions = (kind, *(replace(kind, api_version=each) for each in kind.others))
            found = next(filter(None, (self._read(each, namespace) for each in versions)), [])
            self._known[kind, namespace] = [shaped(kind.name, obj) for obj in found if obj]
        return self._known[kind, namespace]

    def workloads(self, namespace: str) -> Iterable[tuple[str, Object]]:
        """Returns all workloads, each with the name of its kind.

        Reads pods first, so that an unreachable cluster causes one error, then other kinds in parallel.
        """
        self.all(POD, namespace)
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda kind: self.all(kind, namespace), dict.fromkeys((*WORKLOADS.values(), *MAKERS))))
        return ((called, each) for called, kind in WORKLOADS.items() for each in self.all(kind, namespace))

    def others(self, namespace: str) -> list[tuple[Kind, Object]]:
        """Returns owners with kinds that this program does not know: owners of pods, jobs and Kueue Workloads, and
        their owners.
        """
        if namespace not in self._others:
            kinds = dict.fromkeys((POD, QUEUED, *WORKLOADS.values(), *MAKERS))
            made = [obj for kind in kinds for obj in self.all(kind, namespace)]
            known, found = {obj["metadata"]["uid"] for obj in made}, list[tuple[Kind, Object]]()
            while made:
                references = [each for obj in made for each in obj["metadata"].get("ownerReferences", [])]
                new = {
                    each["uid"]: each
                    for each in references
                    if each["uid"] not in known | {""} and each["kind"] != "Node"
                }
                added = [(kind := kind_of(each), self._other(kind, namespace, each)) for each in new.values()]
                found, made, known = [*found, *added], [obj for _, obj in added], known | new.keys()
            self._others[namespace] = found
        return self._others[namespace]

    def _other(self, kind: Kind, namespace: str, reference: Object) -> Object:
        metadata = {"name": reference["name"], "namespace": namespace, "uid": reference["uid"]}
        bare = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata}
        there = self.allowed(kind, namespace)
        same = (each for each in there if each["metadata"]["uid"] == reference["uid"])
        return next(same, shaped(kind.name, bare))

    def allowed(self, kind: Kind, namespace: str = "") -> list[Object]:
        try:
            return self.all(kind, namespace) if kind.api_version else []
        except ReadFailed:
            return []

    def config(self, namespace: str, name: str, key: str) -> Object:
        """Returns the document in a ConfigMap's key; empty if it is missing or invalid."""
        maps = (each for each in self.all(CONFIG_MAP, namespace) if each["metadata"]["name"] == name)
        return next((document(name, each.get("data", {}).get(key, "")) for each in maps), {})

    def named_in_events(self, namespace: str, name: str) -> list[tuple[str, Object]]:
        """Returns the objects with this name that have events, each with its kind."""
        about = [event["involvedObject"] for event in self.all(EVENT, namespace)]
        kinds = dict.fromkeys(kind_of(each) for each in about if each.get("name") == name and each.get("kind"))
        objects = ((kind, each) for kind in kinds for each in self.allowed(kind, namespace))
        return [(kind.name.lower(), each) for kind, each in objects if each["metadata"]["name"] == name]

    @property
    def is_complete(self) -> bool:
        return not self._only

    def owned(self, kind: Kind, namespace: str, owners: Iterable[str]) -> list[Object]:
        return [obj for obj in self.all(kind, namespace) if owners_of(obj) & set(owners)]

    def node(self, name: str) -> Object | None:
        """Looks a node up in an index, because large jobs need thousands of look-ups."""
        self._nodes = self._nodes or {node["metadata"]["name"]: node for node in self.all(NODE)}
        return self._nodes.get(name)

    def on_node(self, node: Object) -> list[Object]:
        name = node["metadata"]["name"]
        return [pod for pod in self.all(POD) if pod["spec"].get("nodeName") == name and not has_ended(pod)]

    def runs(self, labels: Mapping[str, str]) -> bool:
        return not self.is_complete or any(labelled(pod, labels) and is_ready(pod) for pod in self.all(POD))

    def events(self, obj: Object) -> list[Object]:
        found = [event for event in self.all(EVENT, obj["metadata"].get("namespace", "")) if _is_about(event, obj)]
        return sorted(found, key=event_time)


def _is_about(event: Object, obj: Object) -> bool:
    """Compares uids, or kind and name if a controller omitted the uid."""
    about, metadata = event["involvedObject"], obj["metadata"]
    if about.get("uid"):
        return bool(about["uid"] == metadata["uid"])
    return bool(about.get("name")) and (about["name"], about.get("kind")) == (metadata["name"], obj.get("kind", "?"))


def kind_of(reference: Object) -> Kind:
    name = str(reference["kind"])
    return Kind(reference.get("apiVersion") or "", name, f"{name.lower()}s")


def owners_of(obj: Object) -> set[str]:
    return {owner["uid"] for owner in obj["metadata"].get("ownerReferences", [])} - {""}


def where(obj: Object) -> str:
    return f"-n {obj['metadata']['namespace']} {obj['metadata']['name']}"


def labelled(obj: Object, labels: Mapping[str, str]) -> bool:
    """Returns whether the object, which may lack metadata, has all these labels."""
    return bool(labels.items() <= obj.get("metadata", {}).get("labels", {}).items())


def event_time(event: Object) -> str:
    """Returns an event's time in RFC 3339 and UTC, so that times sort as text. Controllers write it to different
    fields.
    """
    series: str | None = (event.get("series") or {}).get("lastObservedTime")
    made = event["metadata"].get("creationTimestamp", "")
    return series or str(event.get("lastTimestamp") or event.get("eventTime") or made)
