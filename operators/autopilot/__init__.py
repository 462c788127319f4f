"""Autopilot: checks the GPUs of nodes periodically, and labels nodes with the results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pulumi_kubernetes as kubernetes

from components.operators import InstallContext, Installed, Operator
from config.data.scheduling import ANY_TAINT, NVIDIA_RUNTIME
from config.problems.errors import Problem
from config.problems.fixes import Path, by_hand, set_command
from config.schema.models import StackFile
from config.schema.operators import MONITORING, Capability, ChartSettings, Installation
from operators._lib.release import Values, release

_KEY: Path = ("operators", "autopilot")
_TEST: Path = (*_KEY, "testSharedFiles")
_INTERVALS = ("repeat", "invasive")
NAME = "autopilot"
IMAGE_TAG = "v2.1.3"
"""The tag of the release. The chart's default `latest` is built from main, and requires intervals with units
(IBM/autopilot 09a177d, pkg/cmd/main.go). It would exit, because this chart sets whole hours.
"""
NEVER_HOURS = 10 * 365 * 24
"""The interval that disables invasive checks, which take all GPUs of a node and bypass queue and scheduler
(pkg/utils/functions.go, CreateJob: `nodeName`).
"""
CHECKS, LAST = ("pciebw", "remapped", "gpupower"), "ping"
"""The checks of a round. A check that cannot run ends the round (pkg/healthcheck/healthcheck.go, RunHealthLocalNode),
so `ping`, which depends on other nodes, is last. `dcgm` is omitted: the image's DCGM 3 and CUDA 12.1
(autopilot-daemon/Dockerfile) reject the CUDA 13 of the GPU Operator's driver (NVIDIA/DCGM#59, #249). The script of
`dcgm` then prints ABORT, which counts as passed.
"""
ANNOTATIONS = {"ai-on-aks/ping": "by-pod-ip"}
"""An annotation of Autopilot's pods. `ping` uses pod IPs if Multus' annotation is missing, but fails with a TypeError
if pods have no annotations at all (network/ping-entrypoint.py, check_local_ifaces).
"""


class AutopilotSettings(ChartSettings):
    """Settings of Autopilot. It is off by default, because its image has full access to GPU nodes."""

    enabled: bool = False
    """Whether the stack installs it."""
    test_shared_files: bool = False
    """Whether each node also creates and deletes a claim of the class of shared files in every round of checks. If the
    claim is not bound within 90 seconds, the node gets the label of a warning.
    """


def problems(stack: StackFile, settings: AutopilotSettings) -> Iterator[Problem]:
    """Yields a problem for intervals that make Autopilot exit, and for a test of shared files in a stack without them.

    According to Autopilot's help, 0 disables invasive checks, but `time.NewTicker` panics (pkg/cmd/main.go of 2.1.3).
    """
    for name in _INTERVALS:
        given = settings.values.get(name)
        if isinstance(given, int) and given < 1:
            path = (*_KEY, "values", name)
            yield Problem(
                path, f"is {given}, but Autopilot exits with a value below 1", "whole hours, 1 or more", by_hand(path)
            )
    if settings.test_shared_files and stack.shared_class is None:
        what, allowed = "is true, but the stack has no class of shared files", "false, or storage.sharedClass"
        yield Problem(_TEST, what, allowed, set_command(_TEST, False))


class Autopilot(Installed[AutopilotSettings]):
    """The release, and a patch that lets its pods run on GPU nodes and use their GPUs."""

    def create(self, context: InstallContext, settings: AutopilotSettings) -> None:
        tested = context.settings.shared_class if settings.test_shared_files else None
        before = [each for other in context.installed.values() for each in (*other.followed, *other.policies)]
        own = values(tested)
        installed = release(
            NAME, context, parent=self, values=own, user_values=settings.values, depends_on=before, awaited=False
        )
        kubernetes.apps.v1.DaemonSetPatch(
            NAME,
            metadata={"name": NAME, "namespace": context.namespace.metadata["name"], "annotations": _NOT_AWAITED},
            spec={"template": {"spec": pod()}},
            opts=self.child(depends_on=[installed]),
        )


_NOT_AWAITED = {"pulumi.com/skipAwait": "true"}
"""Pulumi does not wait for pods with this annotation, because they wait for the driver of each node."""


def values(tested_class: str | None = None) -> Values:
    """Returns values of the chart. With `tested_class`, each round creates and deletes a claim of that class.

    Helm replaces lists, so `env` has all four variables of the chart. DCGM_FATAL_ERRORS must be empty: otherwise each
    letter of the text counts as an error (gpu-dcgm/entrypoint.py, patch_node).
    """
    env = {
        "PERIODIC_CHECKS": ",".join([*CHECKS, *(["pvc"] if tested_class else []), LAST]),
        "PVC_TEST_STORAGE_CLASS": tested_class or "",
        "DCGM_FATAL_ERRORS": "",
        "INVASIVE_JOB_TTLSEC": "",
    }
    return {
        "image": {"tag": IMAGE_TAG},
        "invasive": NEVER_HOURS,
        "annotations": ANNOTATIONS,
        "env": [{"name": name, "value": value} for name, value in env.items()],
    }


def pod() -> Values:
    """Returns the pod fields that the chart has no values for: tolerations of GPU nodes, and the runtime for GPUs.

    Autopilot requests no GPU (`nvidia.com/gpu: 0`) and expects NVIDIA's runtime to be the default. Since 25.10, the GPU
    Operator no longer sets that default (v26.7.0, controllers/object_controls.go, transformToolkitCtrForCDI). With the
    runtime class, a container gets the GPUs that its environment names. The image, based on nvidia/cuda, names all.

    Helm keeps fields that neither the old nor the new chart has (helm v3, pkg/kube/client.go, createPatch: a three-way
    merge). The kubernetes plugin does not use Helm 4 yet (pulumi/pulumi-kubernetes#4190).
    """
    return {"tolerations": ANY_TAINT, "runtimeClassName": NVIDIA_RUNTIME}


class _Autopilot(Operator[AutopilotSettings]):
    name = NAME
    title = "Autopilot"
    summary = "Checks GPUs every hour and labels their nodes; AppWrapper uses these labels."
    namespace = NAME
    settings = AutopilotSettings
    component = Autopilot
    follows = (MONITORING, "gpu-operator", "nfs-subdir-external-provisioner")
    needs: Mapping[Capability, str] = {"GPUs": "uses NVIDIA's runtime to check GPUs"}

    def problems(self, installation: Installation) -> Iterator[Problem]:
        if installation.stack.operators.of(self).enabled:
            yield from problems(installation.stack, installation.stack.operators.of(self))


OPERATOR = _Autopilot()
