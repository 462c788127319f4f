"""Autopilot: checks the GPUs of nodes again and again, and labels nodes with what it finds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pulumi_kubernetes as kubernetes

from components.operators import Installed, Operator, Site
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
"""Of its release. By default the chart has `latest`, which is built from main since: that takes intervals with units
(IBM/autopilot 09a177d, pkg/cmd/main.go) and ends at once with the whole hours of this chart.
"""
NEVER_HOURS = 10 * 365 * 24
"""Of the checks that take all GPUs of a node past queue and scheduler (pkg/utils/functions.go, CreateJob: `nodeName`).
0, which is to turn them off, ends Autopilot: `time.NewTicker` panics.
"""
CHECKS, LAST = ("pciebw", "remapped", "gpupower"), "ping"
"""A check that fails to run ends the round (pkg/healthcheck/healthcheck.go, RunHealthLocalNode), so what depends on
other nodes comes last. `dcgm` is left out: the image has DCGM 3 and CUDA 12.1 (autopilot-daemon/Dockerfile), which
reject the CUDA 13 of the GPU Operator's driver (NVIDIA/DCGM#59, #249). Its script then prints ABORT, and that counts as
passed.
"""
ANNOTATIONS = {"ai-on-aks/ping": "by-pod-ip"}
"""Of its pods, so that there is one: `ping` looks for Multus' annotation, and without any annotation it fails with a
TypeError in place of the KeyError after which it uses pod IPs (network/ping-entrypoint.py, check_local_ifaces).
"""


class AutopilotSettings(ChartSettings):
    """It is off unless it is asked for: its image has the freedom of GPU nodes."""

    enabled: bool = False
    """Whether the stack has it."""
    test_shared_files: bool = False
    """Whether each node also makes, and takes away, a claim of the class of shared files with every round of checks. A
    node whose claim is not bound within 90 seconds gets the label of one with a warning.
    """


def problems(stack: StackFile, settings: AutopilotSettings) -> Iterator[Problem]:
    """Intervals with which it would end, and a test of shared files where there are none.

    `time.NewTicker` panics with 0 (pkg/cmd/main.go of 2.1.3), though by its help 0 turns the invasive checks off.
    """
    for name in _INTERVALS:
        given = settings.values.get(name)
        if isinstance(given, int) and given < 1:
            path = (*_KEY, "values", name)
            yield Problem(
                path, f"is {given}, which ends Autopilot as it starts", "whole hours, 1 or more", by_hand(path)
            )
    if settings.test_shared_files and stack.shared_class is None:
        what, allowed = "is true, but the stack has no class of shared files", "false, or storage.sharedClass"
        yield Problem(_TEST, what, allowed, set_command(_TEST, False))


class Autopilot(Installed[AutopilotSettings]):
    """The release, whose pods get onto the nodes and to their GPUs by a patch."""

    def create(self, site: Site, settings: AutopilotSettings) -> None:
        tested = site.settings.shared_class if settings.test_shared_files else None
        before = [each for other in site.installed.values() for each in (*other.followed, *other.policies)]
        own = values(tested)
        installed = release(
            NAME, site, parent=self, values=own, user_values=settings.values, depends_on=before, awaited=False
        )
        kubernetes.apps.v1.DaemonSetPatch(
            NAME,
            metadata={"name": NAME, "namespace": site.namespace.metadata["name"], "annotations": _NOT_AWAITED},
            spec={"template": {"spec": pod()}},
            opts=self.child(depends_on=[installed]),
        )


_NOT_AWAITED = {"pulumi.com/skipAwait": "true"}
"""Its pods wait for drivers, which come to each node in their time."""


def values(tested_class: str | None = None) -> Values:
    """Values of the chart. With `tested_class` each round makes and takes away a claim of that storage class.

    A list replaces the chart's whole: the environment has all four of it. What counts as fatal must be there and empty
    (gpu-dcgm/entrypoint.py, patch_node: else it goes by the letters of that text).
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
    """What of its pods the chart has no values for: taints of GPU nodes, and the runtime that gives it their GPUs.

    It asks for none (`nvidia.com/gpu: 0`) and was written for nodes whose runtime is NVIDIA's by default; since 25.10
    the GPU Operator leaves that as it is (v26.7.0, controllers/object_controls.go, transformToolkitCtrForCDI). With the
    class, the runtime gives a container what its environment names, and its image, of nvidia/cuda, names all GPUs.

    Helm leaves fields alone that neither the old nor the new chart has (helm v3, pkg/kube/client.go, createPatch: a
    three-way merge); the kubernetes plugin is not on Helm 4 yet (pulumi/pulumi-kubernetes#4190).
    """
    return {"tolerations": ANY_TAINT, "runtimeClassName": NVIDIA_RUNTIME}


class _Autopilot(Operator[AutopilotSettings]):
    name = NAME
    title = "Autopilot"
    summary = "Checks GPUs every hour and labels their nodes; AppWrapper goes by these labels."
    namespace = NAME
    settings = AutopilotSettings
    component = Autopilot
    follows = (MONITORING, "gpu-operator", "nfs-subdir-external-provisioner")
    needs: Mapping[Capability, str] = {"GPUs": "checks them by the runtime that it brings"}

    def problems(self, installation: Installation) -> Iterator[Problem]:
        """Intervals that end it, and a test of storage that there is none of."""
        if installation.stack.operators.of(self).enabled:
            yield from problems(installation.stack, installation.stack.operators.of(self))


OPERATOR = _Autopilot()
