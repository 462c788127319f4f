"""The blob CSI driver from its chart, which mounts blob containers instead of AKS's add-on.

Chart and add-on have objects with the same names, so a cluster can only have one (`storage.driver`). A change from
add-on to chart first removes AKS's driver. A change from chart to add-on needs `none` in between.
"""

from __future__ import annotations

from collections.abc import Iterator

from components.operators import InstallContext, Installed, Operator
from config.data.scheduling import ANY_TAINT, ON_SYSTEM_POOL
from config.data.versions import versions
from config.problems.errors import Problem
from config.problems.fixes import Path, either_by_hand, path_text, remove_command, set_command
from config.schema.models import StackFile
from config.schema.operators import NVIDIA_NAMESPACE, ChartSettings, Installation
from operators._lib.release import Values, release

NAME = "blob-csi-driver"
NAMESPACE = "kube-system"
"""The namespace of the driver's objects (kubernetes-sigs/blob-csi-driver, charts/README.md)."""


class BlobCsiDriver(Installed[ChartSettings]):
    def create(self, context: InstallContext, settings: ChartSettings) -> None:
        release(NAME, context, parent=self, values=values(), user_values=settings.values, namespace=NAMESPACE)


def values() -> Values:
    return {
        # The controller creates volumes, but this program's volumes exist. A second replica needs a second system node.
        "controller": {"replicas": 1, **ON_SYSTEM_POOL},
        "node": {"tolerations": ANY_TAINT, "enableAznfsMount": False},
    }


class _BlobCsiDriver(Operator[ChartSettings]):
    name = NAME
    title = "the blob CSI driver"
    summary = "The chart of the blob driver; installed if `storage.driver` is `chart` and there is a container."
    namespace = NVIDIA_NAMESPACE  # the release depends on it, but installs into NAMESPACE
    settings = ChartSettings
    component = BlobCsiDriver

    def is_wanted(self, stack: StackFile) -> bool:
        return stack.operators.of(self).enabled and stack.storage.needs("chart")

    def problems(self, installation: Installation) -> Iterator[Problem]:
        storage, chart = installation.stack.storage, installation.stack.operators.of(self)
        path: Path = ("operators", "blobCsiDriver")
        if storage.driver == "addon" and chart != ChartSettings():
            what = "is for the driver's chart, but storage.driver is addon"
            fix = either_by_hand(path, "set storage.driver to chart")
            yield Problem(path, what, "no value, or storage.driver chart", fix)
        if storage.needs("chart") and not chart.enabled:
            where = (*path, "enabled")
            what = "is false, but storage.containers need this driver"
            yield Problem(where, what, "true, or storage.driver addon", set_command(where, True))
        mounted = [account for account in storage.by_identity() if account.settings.containers]
        if mounted and storage.driver == "chart":
            auth = path_text((*mounted[0].path, "auth"))
            yield from self._identity_problems(installation, (*path, "values"), auth)

    def _identity_problems(self, installation: Installation, path: Path, auth: str) -> Iterator[Problem]:
        since, (image, again) = versions().identity_mounts, (("image", "blob", "tag"), ("feature", "requiresRepublish"))
        tag = installation.value(self, *image) or versions().charts[NAME].version
        if since.is_older(str(tag)):
            what = f"is {tag}, a driver that cannot mount by identity ({auth}) and would use the account's key"
            allowed = f"{since.driver} or newer, or {auth} sas"
            yield Problem((*path, *image), what, allowed, remove_command((*path, *image)))
        if installation.value(self, *again) is False:
            what = f"is false, so mounts by identity ({auth}) would fail within a day, when their first token expires"
            yield Problem((*path, *again), what, f"true, or {auth} sas", set_command((*path, *again), True))


OPERATOR = _BlobCsiDriver()
