"""Images of Azure's registries: what has to be there before a pod that needs one runs. In the file's order."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.azure_cluster import SCRIPT_IMAGE, AzureCluster
from tests.support.world import World, eventually

pytestmark = pytest.mark.simulator
TAG = "0123456789ab"


@pytest.fixture(scope="module")
def cluster(world: World) -> Iterator[AzureCluster]:
    made = AzureCluster(world, "pulls")
    made.create()
    yield made
    made.delete()


def test_an_image_needs_registry_role_and_push_and_runs_once_all_are_there(cluster: AzureCluster) -> None:
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


def test_the_pods_events_tell_what_was_refused(cluster: AzureCluster) -> None:
    assert {"Failed", "BackOff"} <= set(cluster.warnings("script"))


def test_a_pod_that_is_only_faked_waits_for_its_image_as_well(cluster: AzureCluster) -> None:
    cluster.run("server", "sleep inf", image=cluster.image("team/server", "v1"))
    cluster.waits_for("server", "team/server:v1: not found")
    cluster.push("team/server", "v1")
    eventually(lambda: cluster.phase("server") == "Running", "the faked pod runs", 60)


def test_an_image_elsewhere_needs_nothing(cluster: AzureCluster) -> None:
    cluster.run("public", "sleep inf", image="docker.io/library/alpine:3")
    eventually(lambda: cluster.phase("public") == "Running", "the faked pod runs", 60)
