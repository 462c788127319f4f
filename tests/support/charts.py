"""The program's values for charts, and the pinned Helm that renders them."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import yaml

from operators import (
    autopilot,
    blob_csi_driver,
    gpu_operator,
    kueue,
    monitoring,
    network_operator,
    nfd,
    scheduler_plugins,
    volcano,
)
from operators import nfs_subdir_external_provisioner as nfs_provisioner
from operators.nfs_subdir_external_provisioner import NfsProvisionerSettings
from simulator.charts import make_values
from simulator.host import paths

VALUES: dict[str, dict[str, Any]] = {
    nfd.NAME: nfd.values(),
    network_operator.NAME: network_operator.values(),
    gpu_operator.NAME: gpu_operator.values("when-idle", rdma=True, pools={}),
    volcano.NAME: volcano.values(autoscaled=False),
    kueue.NAME: kueue.values(),
    scheduler_plugins.NAME: scheduler_plugins.values(),
    blob_csi_driver.NAME: blob_csi_driver.values(),
    autopilot.NAME: autopilot.values("shared-files"),
    monitoring.NAME: monitoring.values("managed-csi"),
    nfs_provisioner.NAME: nfs_provisioner.values(NfsProvisionerSettings(server="10.1.0.4", path="/exports/ai")),
}
RELEASES = {nfs_provisioner.NAME: nfs_provisioner.RELEASE, monitoring.NAME: monitoring.RELEASE}
"""Releases whose names differ from their charts'."""


def helm(
    command: str, chart: str, values: dict[str, Any], folder: Path, *more: str, charts: Path = make_values.CHARTS
) -> tuple[int, str]:
    file = folder / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    where = str(charts / chart)
    names = [RELEASES.get(chart, chart), where] if command == "template" else [where]
    argv = [str(paths.tool("helm")), command, *names, "-n", "ns", "-f", str(file), "--kube-version", "1.35.4", *more]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout + (done.stderr if done.returncode else "")
