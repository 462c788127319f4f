"""The blob CSI driver from its chart: what mounts blob containers, where AKS's own add-on is not wanted.

Both have the same names, and a cluster has one: `storage.driver` chooses. From the add-on to the chart, AKS takes its
driver away before the chart comes. From the chart to the add-on, `none` has to come between.
"""

from __future__ import annotations

from collections.abc import Iterator

from components.operators import Installed, Operator, Site
from config.data.scheduling import ANY_TAINT, ON_SYSTEM_POOL
from config.data.versions import versions
from config.problems.errors import Problem
from config.problems.fixes import Path, either_by_hand, path_text, remove_command, set_command
from config.schema.models import StackFile
from config.schema.operators import NVIDIA_NAMESPACE, ChartSettings, Installation
from operators._lib.release import Values, release

NAME = "blob-csi-driver"
NAMESPACE = "kube-system"
"""Where its objects are looked for (kubernetes-sigs/blob-csi-driver, charts/README.md)."""


class BlobCsiDriver(Installed[ChartSettings]):
    """The release."""

    def create(self, site: Site, settings: ChartSettings) -> None:
        release(NAME, site, parent=self, values=values(), user_values=settings.values, namespace=NAMESPACE)


def values() -> Values:
    """Values of the chart: mounting happens on every node, whatever its taints, and by blobfuse2 alone."""
    return {
        # The controller makes volumes, and those of this program are there already. Two would need two system nodes.
        "controller": {"replicas": 1, **ON_SYSTEM_POOL},
        "node": {"tolerations": ANY_TAINT, "enableAznfsMount": False},
    }


class _BlobCsiDriver(Operator[ChartSettings]):
    name = NAME
    title = "the blob CSI driver"
    summary = "The chart of the blob driver; installed with `storage.driver` `chart` and a container."
    namespace = NVIDIA_NAMESPACE  # not its own, and it follows that one's creation: see BlobCsiDriver
    settings = ChartSettings
    component = BlobCsiDriver

    def is_wanted(self, stack: StackFile) -> bool:
        """With `storage.driver: chart` and a container."""
        return stack.operators.of(self).enabled and stack.storage.needs("chart")

    def problems(self, installation: Installation) -> Iterator[Problem]:
        """The driver comes once: as AKS's add-on, which takes no values and has no switch here, or as its chart."""
        storage, chart = installation.stack.storage, installation.stack.operators.of(self)
        path: Path = ("operators", "blobCsiDriver")
        if storage.driver == "addon" and chart != ChartSettings():
            what = "is for the driver's chart, but storage.driver is addon"
            fix = either_by_hand(path, "set storage.driver to chart")
            yield Problem(path, what, "no value, or storage.driver chart", fix)
        if storage.needs("chart") and not chart.enabled:
            where = (*path, "enabled")
            what = "is false, but storage.containers are mounted by it"
            yield Problem(where, what, "true, or storage.driver addon", set_command(where, True))
        mounted = [account for account in storage.by_identity() if account.settings.containers]
        if mounted and storage.driver == "chart":
            auth = path_text((*mounted[0].path, "auth"))
            yield from self._of_identity(installation, (*path, "values"), auth)

    def _of_identity(self, installation: Installation, path: Path, auth: str) -> Iterator[Problem]:
        """A driver that mounts by identity, and goes on to bring each mount its next token."""
        since, (image, again) = versions().identity_mounts, (("image", "blob", "tag"), ("feature", "requiresRepublish"))
        tag = installation.value(self, *image) or versions().charts[NAME].version
        if since.is_older(str(tag)):
            what = f"is {tag}, a driver that cannot mount by identity ({auth}), but would fetch the account's key"
            allowed = f"{since.driver} or newer, or {auth} sas"
            yield Problem((*path, *image), what, allowed, remove_command((*path, *image)))
        if installation.value(self, *again) is False:
            what = f"is false, and so mounts by identity ({auth}) would end with their first token, within the day"
            yield Problem((*path, *again), what, f"true, or {auth} sas", set_command((*path, *again), True))


OPERATOR = _BlobCsiDriver()
