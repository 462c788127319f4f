from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.azure_cluster import SCRIPT_IMAGE, AzureCluster
from tests.support.world import World

pytestmark = pytest.mark.simulator
TAG = "0123456789ab"


@pytest.fixture(scope="module")
def cluster(world: World) -> Iterator[AzureCluster]:
    made = AzureCluster(world, "pulls")
    made.create()
    yield made
    made.delete()


def test_a_pull_needs_a_registry_a_role_and_a_pushed_image(cluster: AzureCluster) -> None:
    cluster.run("script", "echo pulled", image=cluster.image(SCRIPT_IMAGE, TAG))
    cluster.waits_for("script", "lookup pullsimages.azurecr.io: no such host")
    cluster.create_registry()
    cluster.waits_for("script", "401 Unauthorized")
    cluster.attach_registry()
    cluster.waits_for("script", f"pullsimages.azurecr.io/{SCRIPT_IMAGE}:{TAG}: not found")
    assert cluster.waiting("script")["reason"] in ("ErrImagePull", "ImagePullBackOff")
    assert cluster.phase("script") == "Pending"
    cluster.push(SCRIPT_IMAGE, TAG)
    assert cluster.log("script") == "pulled"
    assert {"Failed", "BackOff"} <= set(cluster.warnings("script"))
